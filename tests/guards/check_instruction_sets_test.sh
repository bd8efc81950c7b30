#!/usr/bin/env bash
# scripts/check_instruction_sets.sh finds an instruction out of place, code that the linker could
# share, and a build that holds none of a set: check_instruction_sets_test.sh CHECK COMPILER
# For x86-64.
set -euo pipefail

check=$1 compiler=$2
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mkdir -p "$build/src/kernels"
failed=0

# object NAME FLAGS: an object of the code on standard input.
object() { "$compiler" -x c++ -O2 $2 -c -o "$build/src/$1.o" -; }

readonly loop='float f(const float* x, int n) {
  float s[64] = {};
  for (int i = 0; i < n; ++i) for (int k = 0; k < 64; ++k) s[k] += x[64 * i + k];
  return s[0] + s[63]; }'

clean() {
  rm -f "$build"/src/*.o "$build"/src/kernels/*.o
  object plain "" <<<"$loop"
  object a_avx2 "-O3 -mavx2" <<<"$loop"
  object a_avx512 "-O3 -march=x86-64-v4 -mprefer-vector-width=512" <<<"$loop"
  object kernels/amx "" <<<'void clear() { asm volatile("tilezero %tmm0"); }'
}

finds() {
  local output
  if output=$("$check" "$build" 2>&1) || [[ $output != *"$1"* ]]; then
    echo "expected: $1"
    echo "found: $output"
    failed=1
  fi
}

clean
"$check" "$build" || failed=1

mv "$build/src/a_avx512.o" "$build/src/a_avx2_too.o"
finds "a_avx2_too.o: an instruction of AVX-512"

clean
cp "$build/src/kernels/amx.o" "$build/src/a_avx512_too.o"
finds "a_avx512_too.o: an instruction of AMX"

clean
cp "$build/src/a_avx2.o" "$build/src/other.o"
finds "other.o: an instruction of AVX"

clean
rm "$build/src/a_avx512.o"
finds "no object holds an instruction of AVX-512"

clean
object b_avx2 -mavx2 <<<'template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }
float g(float x) { return twice(x); }'
finds "b_avx2.o: code of AVX that other objects may be given: float twice<float>(float)"

exit "$failed"
