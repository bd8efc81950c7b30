#!/usr/bin/env bash
# Checks that a release build runs on every machine of its processor family: no instruction beyond
# the baseline stands outside the objects of its instruction set, and those objects define no
# function that the linker could take for every other object's copy of it.
#   check_instruction_sets.sh BUILD [OBJDUMP [NM]]
# Prints one line for each breach; the exit status is 1 if there is any.
set -euo pipefail

build=$1 objdump=${2:-objdump} nm=${3:-nm}

objects=()
if [[ -d $build/src ]]; then mapfile -t objects < <(find "$build/src" -name '*.o' | sort); fi
if [[ ${#objects[@]} -eq 0 ]]; then
  echo "$build/src holds no objects; build the project first"
  exit 1
fi

# What shows in "BYTES<tab>INSTRUCTION<tab>OPERANDS" that a set is needed, and the paths of the
# objects that may need it, which are tested for it too: a check that finds nothing proves nothing.
declare -A sign home
architecture=$("$objdump" -f "${objects[0]}" | grep -m 1 -oE 'x86-64|aarch64' || true)
case $architecture in
  x86-64)
    # The EVEX prefix, after one of segment or address size at most; a mask register.
    sign[AVX-512]=$'^((2e|36|3e|26|64|65|67) )?62 |%k[0-7]|%zmm'
    home[AVX-512]='avx512|kernels/amx'
    sign[AMX]=$'%tmm[0-7]|\t(ldtilecfg|tilerelease)'
    home[AMX]='kernels/amx'
    # The VEX prefixes.
    sign[AVX]=$'^((2e|36|3e|26|64|65|67) )?c[45] '
    home[AVX]='avx2|avx512|kernels/amx'
    ;;
  aarch64)
    sign[dotprod]=$'\t[su]dot\t'
    home[dotprod]='kernels/neon'
    sign[i8mm]=$'\t(smmla|ummla|usmmla|usdot|sudot)\t'
    home[i8mm]='(kernels|peaks)_i8mm'
    ;;
  *)
    echo "${objects[0]}: neither x86-64 nor aarch64"
    exit 1
    ;;
esac

breaches=0
breach() {
  echo "$1"
  breaches=$((breaches + 1))
}

declare -A found
for object in "${objects[@]}"; do
  path=${object#"$build/src/"}
  code=$("$objdump" -d --wide --insn-width=15 "$object" | sed -nE 's/^ *[0-9a-f]+:\t//p')
  for set in "${!sign[@]}"; do
    line=$(grep -m 1 -E "${sign[$set]}" <<<"$code" || true)
    [[ -n $line ]] || continue
    found[$set]=1
    [[ $path =~ ${home[$set]} ]] || breach "$path: an instruction of $set: ${line//$'\t'/ }"
  done
  for set in "${!home[@]}"; do
    [[ $path =~ ${home[$set]} ]] || continue
    symbol=$("$nm" --defined-only --demangle "$object" | sed -nE 's/^[0-9a-f]+ W //p' | head -n 1)
    [[ -z $symbol ]] || breach "$path: code of $set that other objects may be given: $symbol"
  done
done
for set in "${!sign[@]}"; do
  [[ -n ${found[$set]:-} ]] || breach "no object holds an instruction of $set"
done
[[ $breaches -eq 0 ]]
