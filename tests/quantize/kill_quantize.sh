#!/bin/bash
# kill_quantize.sh PROGRAM MODEL TYPE ROUNDS: ends `quantize` with SIGKILL at random moments. Nothing may
# then stand under the final name unless it is complete, nothing but OUT.part beside it, and the next
# run must succeed and leave no more than its file.
set -u
program=$1 model=$2 type=$3 rounds=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out.gguf
fail() { echo "kill_quantize: $*" >&2; exit 1; }

begin=$(date +%s%N)
"$program" quantize "$model" "$out" "$type" > "$folder.log" 2>&1 || fail "the first run failed"
micros=$((($(date +%s%N) - begin) / 1000))
rm -f "$folder.log"
wanted=$(sha256sum < "$out")

RANDOM=7
killed=0
for ((round = 0; round < rounds; ++round)); do
  rm -f "$out" "$out.part"
  "$program" quantize "$model" "$out" "$type" > /dev/null 2>&1 &
  pid=$!
  moment=$(((RANDOM * 32768 + RANDOM) % micros))
  sleep "$((moment / 1000000)).$(printf %06d $((moment % 1000000)))"
  kill -KILL "$pid" 2> /dev/null && killed=$((killed + 1))
  wait "$pid" 2> /dev/null
  [ ! -e "$out" ] || [ "$(sha256sum < "$out")" = "$wanted" ] || fail "a broken file after $moment us"
  for file in "$folder"/*; do
    case $file in "$out" | "$out.part" | "$folder/*") ;; *) fail "left $file" ;; esac
  done
  "$program" quantize "$model" "$out" "$type" > /dev/null 2>&1 || fail "the run after a kill failed"
  [ "$(sha256sum < "$out")" = "$wanted" ] || fail "the run after a kill wrote another file"
  [ ! -e "$out.part" ] || fail "the run after a kill left $out.part"
done
echo "$killed of $rounds runs killed; nothing broken"
