#!/usr/bin/env bash
# Checks the rules that keep the source readable: check_guards.sh [ROOT]
#   size       no source file has more than 1,000 lines; one of more than 600 is warned about
#   getenv     the environment is read in src/base/environment.cc alone
#   variables  what is read stands in that file's table, and what stands there is read
#   layers     a file includes only from its own layer and the layers below it
# Prints one line for each breach; the exit status is 1 if there is any.
set -euo pipefail

root=$(cd "${1:-$(dirname "$0")/..}" && pwd)
cd "$root"

readonly most_lines=1000 many_lines=600
readonly environment=src/base/environment.cc

# layer: the layers that it may include from, besides itself and the public headers
declare -rA below=(
  [base]=""
  [tensor]="base"
  [gguf]="base tensor"
  [arch]="base tensor gguf"
  [tokenizer]="base tensor gguf"
  [quantize]="base tensor gguf"
  [convert]="base tensor gguf arch quantize tokenizer"
  [chat]="base tensor gguf constraint"
  [constraint]="base tensor gguf"
  [backend]="base tensor gguf arch"
  [runtime]="base tensor gguf arch tokenizer chat constraint backend"
  [c_api]=""
  [server]="base tensor gguf arch tokenizer chat constraint backend runtime"
  [cli]="base tensor gguf arch quantize convert tokenizer chat constraint backend runtime server"
)

breaches=0
breach() {
  echo "$1"
  breaches=$((breaches + 1))
}

# sources FOLDER...: C++ and CUDA files in those of the folders that exist.
sources() {
  local folder
  for folder in "$@"; do
    [[ -d $folder ]] || continue
    find "$folder" -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \)
  done | sort
}

# matches PATTERN FILE...: "FILE:LINE:match" for each; nothing where there is none.
matches() {
  local pattern=$1
  shift
  [[ $# -eq 0 ]] || grep -onHE "$pattern" "$@" || true
}

mapfile -t library < <(sources include src)
mapfile -t everything < <(
  sources include src tests examples fuzz bench python
  find . \( -name build -o -name .git \) -prune -o -type f \
    \( -name '*.py' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt \) -print |
    sed 's|^\./||' | sort
)

check_size() {
  local file lines
  for file in "${everything[@]}"; do
    lines=$(wc -l <"$file")
    if ((lines > most_lines)); then
      breach "$file: $lines lines; split it, $most_lines is the most"
    elif ((lines > many_lines)); then
      echo "warning: $file: $lines lines; $many_lines is the aim" >&2
    fi
  done
}

check_getenv() {
  local file line
  while IFS=: read -r file line _; do
    [[ -z $file || $file == "$environment" ]] ||
      breach "$file:$line: reads the environment; use environment() of base/environment.h"
  done < <(matches '\b(secure_)?getenv\b *\(|\benviron\b' "${library[@]}")
}

check_variables() {
  local file line match name
  local -A table=() read=()
  while IFS=: read -r file line match; do
    name=${match//[\{\" ]/}
    [[ -z $name ]] || table[$name]=1
  done < <(matches '\{ *"[A-Z][A-Z0-9_]*"' "$environment")
  while IFS=: read -r file line match; do
    [[ -n $file && $file != "$environment" ]] || continue
    name=${match#*\"}
    name=${name%\"*}
    read[$name]=1
    [[ -n ${table[$name]:-} ]] || breach "$file:$line: $name is not in the table of $environment"
  done < <(matches '\benvironment\( *"[^"]*"' "${library[@]}")
  for name in "${!table[@]}"; do
    [[ -n ${read[$name]:-} ]] || breach "$environment: nothing reads $name"
  done
}

check_layers() {
  local file line match layer included
  while IFS=: read -r file line match; do
    [[ -n $file ]] || continue
    included=${match#*\"}
    included=${included%\"}
    if [[ $included != */* ]]; then
      breach "$file:$line: includes \"$included\"; write its path from src or include"
      continue
    fi
    included=${included%%/*}
    [[ $included != edgerunner ]] || continue
    if [[ $file == include/* ]]; then
      breach "$file:$line: a public header includes from src ($included)"
      continue
    fi
    layer=${file#src/}
    layer=${layer%%/*}
    if [[ -z ${below[$layer]+known} ]]; then
      breach "$file:$line: $layer is not a layer"
    elif [[ $included != "$layer" && " ${below[$layer]} " != *" $included "* ]]; then
      breach "$file:$line: $layer includes from $included, which is not below it"
    fi
  done < <(matches '^ *# *include *"[^"]*"' "${library[@]}")
}

check_size
check_getenv
check_variables
check_layers
[[ $breaches -eq 0 ]]
