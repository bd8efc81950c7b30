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

# SmolLM2's chat markup, without a system message (README.md, "Limits", says why).
prompt="<|im_start|>user
$question<|im_end|>
<|im_start|>assistant
"
"$root/build/release/bin/edgerunner" generate "$model" --prompt "$prompt" --max-tokens 256 --stats
