#!/usr/bin/env bash
# Checks that a shared library exports the functions that its header declares and nothing else.
#   check_exports.sh LIBRARY HEADER [NM]
set -euo pipefail

library=$1 header=$2 nm=${3:-nm}

exported=$("$nm" --dynamic --defined-only --format=posix "$library" |
  awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort)
# A declaration begins with EDGERUNNER_API, and its name is the word before the first bracket.
declared=$(grep -v '^#' "$header" | tr '\n' ' ' | grep -oE 'EDGERUNNER_API [^()]*\(' |
  sed -E 's/.*[ *]([a-z_]+)\($/\1/' | sort)
[[ $(wc -l <<<"$declared") -gt 20 ]] || { echo "$header: no declarations were found"; exit 1; }
diff <(echo "$declared") <(echo "$exported") ||
  { echo "$library does not export what $header declares (<: declared, >: exported)"; exit 1; }
