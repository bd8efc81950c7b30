#!/usr/bin/env bash
# Builds the Python package into a virtual environment of its own, on the library that the release
# build made, and runs its tests and mypy.
#   test_python.sh [tools]     with "tools": only fetches what it needs of PyPI
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
venv=build/python-venv

"$root/scripts/install_dependencies.sh" python
[[ -x $venv/bin/pip ]] || python3 -m venv "$venv"
pip() { "$venv/bin/pip" --disable-pip-version-check "$@" </dev/null; }

requirements() {
  "$venv/bin/python" - <<'END'
import tomllib
with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
lists = settings["build-system"]["requires"], project["dependencies"], *project["optional-dependencies"].values()
print(*(name for names in lists for name in names), sep="\n")
END
}
requirements >build/python-requirements.txt
pip install --quiet --requirement build/python-requirements.txt
[[ ${1:-} != tools ]] || exit 0

# As `pip install .` would, but for the library, which is there already.
cmake --install build/release --prefix "$root/build/python-library" >/dev/null
pip install --quiet --no-build-isolation --no-deps . -C cmake.source-dir=python \
  -C build-dir=build/python-linked -C cmake.define.edgerunner_ROOT="$root/build/python-library"
"$venv/bin/pytest" -q
"$venv/bin/mypy" --strict -p edgerunner
"$venv/bin/mypy" --strict python/tests
