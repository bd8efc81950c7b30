#!/usr/bin/env bash
# From a clone to an answer: installs what is missing, builds, fetches a small model, asks it.
#   scripts/quickstart.sh ["What is the capital of France?"]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
question=${1:-What is the capital of France?}

"$root/scripts/install_dependencies.sh" build model
echo "Building EdgeRunner (release) in $root/build/release" >&2
(cd "$root" && cmake --preset release) >&2
cmake --build "$root/build/release" --target edgerunner_program >&2
model=$("$root/scripts/fetch_model.sh")

# SmolLM2's chat markup, with the system message that its own template puts first.
prompt="<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
<|im_start|>user
$question<|im_end|>
<|im_start|>assistant
"
# Exact, since 8-bit activations can turn so small a model away from its likeliest answer.
"$root/build/release/bin/edgerunner" generate "$model" --prompt "$prompt" --precision exact \
  --max-tokens 256 --stats
