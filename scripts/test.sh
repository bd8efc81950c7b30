#!/usr/bin/env bash
# Installs what is missing, and stops where that can't be done; builds, and runs every check that CI
# runs: all tests (release), format, guards, clang-tidy, tests under sanitizers, the quickstart, and
# the Python package. Says how long each took. What failed stands by name before the last line,
# "N passed, N failed, N skipped"; the exit status is 0 when nothing did.
set -uo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
jobs=$(nproc)
passed=0 failed=0 skipped=0
failures=()

mkdir -p build
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# check NAME COMMAND...: one check that passes or fails as a whole. Of one that fails, the lines that
# say why are kept for the end: a compiler's errors, GoogleTest's failures.
check() {
  local name=$1 start=$SECONDS line
  shift
  echo "== $name"
  if "$@" </dev/null 2>&1 | tee "$output"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    failures+=("$name")
    while IFS= read -r line; do failures+=("  $line"); done < <(
      grep -aE '(error|warning|undefined reference|: failed)[: ]|^FAILED|\[  FAILED  \]' "$output" |
        cut -c1-300 | sort -u | head -n 20)
    echo "== $name failed"
  fi
  echo "== $name: $((SECONDS - start)) s"
}

finish() {
  local failure
  for failure in "${failures[@]}"; do echo "failed: $failure"; done
  echo "$passed passed, $failed failed, $skipped skipped"
  exit $((failed > 0))
}

# run_tests PRESET ARGUMENTS...: the tests of a build, counted one by one from ctest's report.
run_tests() {
  local preset=$1 report attribute count start=$SECONDS name
  shift
  report="$root/build/$preset/tests.xml"
  rm -f "$report"
  echo "== tests ($preset)"
  ctest --test-dir "build/$preset" --output-on-failure --parallel "$jobs" --no-tests=error \
    --output-junit "$report" --exclude-regex '_NOT_BUILT$' "$@" </dev/null
  if [[ ! -f "$report" ]]; then
    failed=$((failed + 1))
    failures+=("tests ($preset): ctest gave no report")
    return
  fi
  local -A counts=()
  for attribute in tests failures disabled skipped; do
    count=$(grep -m 1 -oE "\b$attribute=\"[0-9]+\"" "$report" | grep -oE '[0-9]+')
    counts[$attribute]=${count:-0}
  done
  local not_run=$((counts[disabled] + counts[skipped]))
  passed=$((passed + counts[tests] - counts[failures] - not_run))
  failed=$((failed + counts[failures]))
  skipped=$((skipped + not_run))
  if [[ ${counts[failures]} -ne 0 ]]; then
    failures+=("tests ($preset): ${counts[failures]}")
    while IFS= read -r name; do failures+=("  $name"); done < <(
      grep -E '<testcase .*status="fail"' "$report" | grep -oP '(?<= name=")[^"]*')
  fi
  echo "== tests ($preset): $((SECONDS - start)) s"
}

# The release build on an emulated Haswell: nothing that runs there needs AVX-512. What the kernels
# compute is tested above, each instruction set forced; the long tests add nothing to that here.
test_on_haswell() {
  local emulator=(qemu-x86_64-static -cpu Haswell) kernels status=0
  EDGERUNNER_ISA=avx2 "${emulator[@]}" build/release/bin/kernels_test --gtest_brief=1 &
  kernels=$!
  "${emulator[@]}" build/release/bin/base_test --gtest_brief=1 || status=1
  EDGERUNNER_ISA=avx2 "${emulator[@]}" build/release/bin/cpu_executor_test --gtest_brief=1 \
    --gtest_filter='-CpuBits.*:CpuExecutor.ExactAgrees*' || status=1
  wait "$kernels" && return "$status"
}
check_arm64_objects() {
  scripts/check_instruction_sets.sh build/arm64 aarch64-linux-gnu-objdump aarch64-linux-gnu-nm
}

# labels PROGRAMS...: the expression of ctest for the tests of these programs.
labels() { local IFS='|' && echo "^($*)\$"; }

# build PRESET TARGETS...: the sources of a folder together, since most of a compiler's time goes into
# the headers that they share; each by itself that doesn't compile so, as where names of two meet.
build() {
  local preset=$1 alone="" file log again
  shift
  log=$(mktemp)
  while true; do
    cmake --preset "$preset" -DCMAKE_UNITY_BUILD=ON "-DEDGERUNNER_COMPILE_ALONE=${alone#;}" >/dev/null ||
      break
    if cmake --build "build/$preset" -j "$jobs" ${1:+--target "$@"} -- -k 0 2>&1 | tee "$log"; then
      rm "$log"
      return 0
    fi
    again=""
    while IFS= read -r file; do
      [[ ";$alone;" == *";$file;"* ]] || again+=";$file"
    done < <(grep -oP '^/[^:]+\.cc?(?=:\d+:\d+: (fatal )?error)' "$log" | sort -u)
    [[ -n $again ]] || break
    alone+=$again
    echo "== $preset: once more, each of these by itself: ${again//;/ }"
  done
  rm "$log"
  return 1
}

sources() { git ls-files -z -- '*.h' '*.c' '*.cc'; }
check_format() { sources | xargs -0 clang-format --dry-run --Werror; }
check_quickstart() {
  local answer
  answer=$(scripts/quickstart.sh "What is the capital of France?") && echo "$answer" &&
    [[ "$answer" == *Paris* ]]
}

# The server under the official client, which comes from PyPI.
openai_python=build/openai/bin/python
install_openai() {
  [[ -x $openai_python ]] && "$openai_python" -c "import openai" 2>/dev/null ||
    { python3 -m venv build/openai && build/openai/bin/pip -q install openai; }
}
check_openai_client() {
  "$openai_python" tests/server/openai_client_test.py build/release/bin/edgerunner \
    "$(scripts/fetch_model.sh)"
}

# Programs that read untrusted bytes or share memory between threads.
sanitized=(base_test tensor_test gguf_test tokenizer_test runtime_test)

# What depends on the processor, and a model from file to text: run in an emulator for arm64.
emulated=(base_test tensor_test kernels_test cpu_executor_test reference_test model_test)

check "dependencies" scripts/install_dependencies.sh build check arm64
[[ $failed -eq 0 ]] || finish
check "build (release)" build release
run_tests release
check "tests (Haswell)" test_on_haswell
check "build (arm64)" build arm64 "${emulated[@]}"
run_tests arm64 --label-regex "$(labels "${emulated[@]}")"
check "instruction sets (arm64)" check_arm64_objects
check "format" check_format
check "guards" scripts/check_guards.sh
check "clang-tidy" scripts/clang_tidy.py build/release
check "build (asan-ubsan)" build asan-ubsan "${sanitized[@]}"
run_tests asan-ubsan --label-regex "$(labels "${sanitized[@]}")"
if scripts/fetch_model.sh >/dev/null; then
  check "quickstart" check_quickstart
  if install_openai >/dev/null 2>&1; then
    check "openai client" check_openai_client
  else
    echo "== openai client skipped: the package could not be installed"
    skipped=$((skipped + 1))
  fi
else
  echo "== quickstart skipped: the model could not be fetched"
  skipped=$((skipped + 1))
fi
# The Python package, whose build tools come from PyPI.
if scripts/test_python.sh tools >/dev/null 2>&1; then
  check "python package" scripts/test_python.sh
else
  echo "== python package skipped: its build tools could not be installed"
  skipped=$((skipped + 1))
fi

finish
