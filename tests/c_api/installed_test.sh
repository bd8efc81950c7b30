#!/usr/bin/env bash
# Installs the build into a folder of its own, moves that, and compiles and runs a program in C as
# pkg-config says.
#   installed_test.sh CMAKE BUILD EXAMPLE MODEL CC
set -euo pipefail

cmake=$1 build=$2 example=$3 model=$4 cc=$5
work=$build/tests/c_api_installed
rm -rf "$work"
"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
pkgconfig=$(dirname "$(find "$work/moved" -name edgerunner.pc)")
flags=$(PKG_CONFIG_PATH=$pkgconfig pkg-config --cflags --libs edgerunner)
# shellcheck disable=SC2086  # the flags are several words
"$cc" -std=c99 "$example" $flags -Wl,-rpath,"$(dirname "$pkgconfig")" -o "$work/generate"
"$work/generate" "$model" the | grep -E '[0-9]+ tokens, '
