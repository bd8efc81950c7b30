#!/bin/bash
# gpu_check.sh [OUTPUT]: on a machine with an NVIDIA GPU, builds the CUDA backend for it, runs every test
# that needs the GPU, looks for bad memory accesses and races, and measures. Writes the figures, with
# the GPU's name, to OUTPUT (default: bench/results/cuda-NAME.json).
set -euo pipefail
cd "$(dirname "$0")/.."

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
name=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr ' /' '--')
# Hopper's own instructions need the architecture-specific target.
[ "$capability" = 90 ] && capability=90a
output=${1:-bench/results/cuda-$name.json}
build=build/gpu

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DEDGERUNNER_CUDA=ON \
  -DEDGERUNNER_CUDA_ARCHITECTURES="$capability"
cmake --build "$build" --target cuda_test cuda_bench

"$build/bin/cuda_test"
if command -v compute-sanitizer > /dev/null; then
  compute-sanitizer --error-exitcode 1 --tool memcheck "$build/bin/cuda_test" \
    --gtest_filter='CudaFixtures.FastLogits*:CudaFixtures.ExactChunked*'
  compute-sanitizer --error-exitcode 1 --tool racecheck "$build/bin/cuda_test" \
    --gtest_filter='CudaFixtures.ExactBatched*:CudaFixtures.AForward*'
else
  echo "compute-sanitizer is not installed: memory accesses and races were not checked" >&2
fi

lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
for model in "smollm2-135m Q8_0" "llama32-1b Q8_0" "llama3-8b Q8_0" "llama3-8b Q4_K"; do
  # shellcheck disable=SC2086
  "$build/bin/cuda_bench" $model decode 0 512 4096 | tee -a "$lines"
  # shellcheck disable=SC2086
  "$build/bin/cuda_bench" $model prefill 512 4096 | tee -a "$lines"
done
"$build/bin/cuda_bench" llama3-8b Q8_0 rows 512 2 8 32 | tee -a "$lines"

mkdir -p "$(dirname "$output")"
{
  printf '{"gpu": "%s", "date": "%s", "weights": "random, made on the device", "results": [\n' \
    "$name" "$(date +%F)"
  sed '$!s/$/,/' "$lines"
  printf ']}\n'
} > "$output"
echo "figures written to $output"
