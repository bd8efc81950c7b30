#!/usr/bin/env bash
# Each rule of scripts/check_guards.sh finds its breach in a tree made for it, and nothing in a
# clean one: check_guards_test.sh CHECK_GUARDS
set -euo pipefail

guards=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# A tree that keeps every rule.
clean() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{include/edgerunner,src/{base,tensor,gguf,arch,backend/cpu,runtime,cli},tests}
  echo '#include "edgerunner/error.h"' >"$tree/include/edgerunner/model.h"
  {
    echo '    {"EDGERUNNER_ISA", "a purpose"},'
    echo 'const char* value = std::getenv(name);'
  } >"$tree/src/base/environment.cc"
  echo 'environment("EDGERUNNER_ISA");' >"$tree/src/base/cpu_features.cc"
  {
    echo '#include <vector>'
    echo '#include "arch/weights.h"'
    echo '#include "backend/executor.h"'
    echo '#include "edgerunner/types.h"'
  } >"$tree/src/backend/cpu/executor.cc"
}

# finds TEXT: the guards fail and say so.
finds() {
  local output
  if output=$("$guards" "$tree" 2>&1); then
    echo "not found: $1"
    failed=1
  elif [[ $output != *"$1"* ]]; then
    echo "expected: $1"
    echo "found: $output"
    failed=1
  fi
}

# passes: the guards find nothing. Prints what they warn about.
passes() {
  if ! "$guards" "$tree" 2>&1; then
    echo "found something in a tree that keeps the rules"
    failed=1
  fi
}

clean
passes

clean
seq 1001 >"$tree/tests/long.cc"
finds "tests/long.cc: 1001 lines"

clean
seq 1000 >"$tree/tests/long.cc"
[[ $(passes) == *"warning: tests/long.cc: 1000 lines"* ]] || failed=1

clean
echo 'auto home = getenv("HOME");' >"$tree/src/cli/main.cc"
finds "src/cli/main.cc:1: reads the environment"

clean
echo 'environment("EDGERUNNER_NEW");' >"$tree/src/cli/main.cc"
finds "src/cli/main.cc:1: EDGERUNNER_NEW is not in the table"

clean
rm "$tree/src/base/cpu_features.cc"
finds "nothing reads EDGERUNNER_ISA"

clean
echo '#include "tensor/blocks.h"' >"$tree/src/base/half.h"
finds "src/base/half.h:1: base includes from tensor"

clean
echo '#include "runtime/model.h"' >"$tree/src/backend/cpu/attention.cc"
finds "src/backend/cpu/attention.cc:1: backend includes from runtime"

clean
echo '#include "base/half.h"' >"$tree/include/edgerunner/types.h"
finds "a public header includes from src (base)"

clean
echo '#include "options.h"' >"$tree/src/cli/main.cc"
finds 'includes "options.h"'

clean
mkdir "$tree/src/misc"
echo '#include "base/half.h"' >"$tree/src/misc/helper.cc"
finds "misc is not a layer"

exit "$failed"
