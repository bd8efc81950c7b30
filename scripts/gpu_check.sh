#!/bin/bash
# gpu_check.sh [--no-build DIR] [OUTPUT]: on a machine with an NVIDIA GPU, builds the CUDA backend for it,
# runs every test that needs the GPU, looks for bad memory accesses and races, and measures. Writes
# the figures, with the GPU's name, to OUTPUT (default: bench/results/cuda-NAME.json).
# --no-build DIR: runs DIR/cuda_test and DIR/cuda_bench as they are, for a machine that cannot build.
# Takes about four minutes after the build. Exit status 1 where anything failed; the figures are
# written all the same.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

binaries=
if [ "${1:-}" = --no-build ]; then
  binaries=${2:?--no-build needs the folder of the programs}
  shift 2
fi
name=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr ' /' '--') || exit 2
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1)
output=${1:-bench/results/cuda-$name.json}

if [ -z "$binaries" ]; then
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
  # Hopper's own instructions need the architecture-specific target.
  [ "$capability" = 90 ] && capability=90a
  build=build/gpu
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DEDGERUNNER_CUDA=ON \
    -DEDGERUNNER_CUDA_ARCHITECTURES="$capability" || exit 1
  cmake --build "$build" --target cuda_test cuda_bench || exit 1
  binaries=$build/bin
fi

failed=()
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT

# check NAME COMMAND...: notes a failure and goes on.
check() {
  local what=$1 begin=$SECONDS
  shift
  if "$@"; then
    echo "== $what: passed in $((SECONDS - begin)) s"
  else
    echo "== $what: FAILED (exit status $?)"
    failed+=("\"$what\"")
  fi
}

check tests timeout 150 "$binaries/cuda_test" --gtest_brief=1

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
sanitized=false
if [ -n "$sanitizer" ]; then
  sanitized=true
  # A small model whose heads and widths every kernel takes, and the choice of tokens.
  # Updating a graph may fail, and is then done otherwise.
  check memcheck timeout 100 "$sanitizer" --error-exitcode 1 --tool memcheck --report-api-errors no \
    "$binaries/cuda_test" --gtest_brief=1 \
    --gtest_filter='*CudaSmall*:CudaFamilies.SmallRunsEveryPath:CudaExperts.*:*CudaAdapters.*:*CudaFewRowsRotate*:CudaAttention.OfAChunk*:CudaAttention.Waits*'
  check racecheck timeout 100 "$sanitizer" --error-exitcode 1 --tool racecheck \
    "$binaries/cuda_test" --gtest_brief=1 --gtest_filter='*CudaSmall*'
else
  echo "compute-sanitizer is not installed: memory accesses and races were not checked" >&2
fi

# measure SHAPE TYPE TEST [NUMBERS...]
measure() {
  "$binaries/cuda_bench" "$@" 2> /dev/null | tee -a "$lines"
  [ "${PIPESTATUS[0]}" = 0 ] || failed+=("\"bench $*\"")
}
for model in "smollm2-135m Q8_0" "llama32-1b Q8_0" "llama3-8b Q8_0" "llama3-8b Q4_K"; do
  read -r shape type <<< "$model"
  measure "$shape" "$type" decode 0 512 4096
  measure "$shape" "$type" prefill 128 512 4096
  measure "$shape" "$type" generate 0
done
measure llama3-8b Q8_0 rows 512 2 4 8 16 32 64
measure smollm2-135m Q8_0 rows 512 8 32
measure qwen3-30b-a3b Q8_0 generate 0 512
measure qwen3-30b-a3b Q8_0 prefill 512 2048
measure qwen3-30b-a3b Q8_0 rows 512 8 32
measure gemma3-1b Q8_0 generate 0 2048
measure gemma3-1b Q8_0 prefill 512 2048

mkdir -p "$(dirname "$output")"
{
  printf '{"gpu": "%s", "driver": "%s", "date": "%s", "weights": "random, made on the device",\n' \
    "$name" "$driver" "$(date +%F)"
  printf ' "sanitized": %s, "failed": [%s], "results": [\n' "$sanitized" \
    "$(IFS=,; echo "${failed[*]}")"
  sed '$!s/$/,/' "$lines"
  printf ']}\n'
} > "$output"
echo "figures written to $output"
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
