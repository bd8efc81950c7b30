#!/usr/bin/env python3
"""Tiny random models that transformers saves, converted, against its own logits in float64.

    check_transformers.py PROGRAM TEXT [--shape N] [NAME...]     needs transformers 5 and torch; run by hand

TEXT trains a small byte-level tokenizer. Prints for each model, saved in F32 as one file and in BF16 as
several, whether the ids of a text are the same, and the largest error of a logit of `reference` and of
`cpu` in both precisions as a fraction of the largest logit.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import tokenizers as tk
import torch
import transformers as tf

tf.utils.logging.disable_progress_bar()

VOCAB = 512
COMMON = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
              eos_token_id=0, bos_token_id=0, pad_token_id=0)
# Other heads, groups, widths and depths; the widths of 2 take no block of a kernel whole.
SHAPES = [
    dict(),
    dict(hidden_size=96, intermediate_size=160, num_hidden_layers=2, num_attention_heads=6,
         num_key_value_heads=2),
    dict(hidden_size=168, intermediate_size=200, num_hidden_layers=4, num_attention_heads=7,
         num_key_value_heads=1),
    dict(hidden_size=256, intermediate_size=352, num_hidden_layers=1, num_attention_heads=4,
         num_key_value_heads=4),
]
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
TEXT = 'The licence says: "free software"; 3 copies.\n  Tab\there \u00e9\u6f22'


def rope(**more):
    return dict(rope_theta=10000.0, **more)


def with_layers(layers, **more):
    return dict(COMMON, num_hidden_layers=layers, **more)


def pairs():
    return COMMON["hidden_size"] // COMMON["num_attention_heads"] // 2


GEMMA = dict(head_dim=32, sliding_window=8, query_pre_attn_scalar=32)
CONFIGS = {
    "llama": lambda: tf.LlamaConfig(**COMMON, tie_word_embeddings=False),
    "llama31": lambda: tf.LlamaConfig(
        **COMMON, attention_bias=True, tie_word_embeddings=True,
        rope_parameters=rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                             high_freq_factor=4.0, original_max_position_embeddings=64)),
    "yarn": lambda: tf.LlamaConfig(**COMMON, rope_parameters=rope(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=64)),
    "mistral": lambda: tf.MistralConfig(**COMMON, sliding_window=8),
    "mixtral": lambda: tf.MixtralConfig(**COMMON, num_local_experts=4, num_experts_per_tok=2),
    "granite": lambda: tf.GraniteConfig(**COMMON, embedding_multiplier=6.0, residual_multiplier=0.4,
                                        attention_multiplier=0.2, logits_scaling=4.0),
    "smollm3": lambda: tf.SmolLM3Config(**with_layers(5)),
    "qwen2": lambda: tf.Qwen2Config(**COMMON),
    "qwen3": lambda: tf.Qwen3Config(**COMMON, head_dim=32),
    "qwen2moe": lambda: tf.Qwen2MoeConfig(**COMMON, **EXPERTS, shared_expert_intermediate_size=48),
    "qwen3moe": lambda: tf.Qwen3MoeConfig(**COMMON, **EXPERTS, head_dim=16, norm_topk_prob=True),
    "phi3": lambda: tf.Phi3Config(**COMMON),
    "phi3longrope": lambda: tf.Phi3Config(
        **COMMON, original_max_position_embeddings=128,
        rope_parameters=rope(rope_type="longrope", long_factor=[1.0 + i for i in range(pairs())],
                             short_factor=[1.0 + 0.1 * i for i in range(pairs())])),
    "olmo2": lambda: tf.Olmo2Config(**COMMON),
    "gemma2": lambda: tf.Gemma2Config(**with_layers(4, **GEMMA)),
    "gemma3": lambda: tf.Gemma3TextConfig(**with_layers(7, **GEMMA)),
    "starcoder2": lambda: tf.Starcoder2Config(**COMMON),
    "stablelm": lambda: tf.StableLmConfig(**COMMON),
}


def make_tokenizer(text):
    tokenizer = tk.Tokenizer(tk.models.BPE())
    tokenizer.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tk.decoders.ByteLevel()
    tokenizer.train_from_iterator([text], tk.trainers.BpeTrainer(
        vocab_size=VOCAB - 6, special_tokens=["<|endoftext|>"],
        initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet()))
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>",
                                      bos_token="<|endoftext|>")


def new_model(config):
    config._experts_implementation = "eager"  # the others have no float64
    model = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager",
                                                dtype=torch.float32)
    model.config._experts_implementation = "eager"
    return model


def run(*arguments):
    return json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def check(program, name, dtype, tokenizer, folder):
    config = CONFIGS[name]()
    model = new_model(config)
    for weight in model.parameters():
        noise = torch.randn_like(weight)
        weight.data = weight.data + 0.3 * noise if weight.dim() == 1 else 0.2 * noise
    model = model.to(dtype)
    model.save_pretrained(folder, max_shard_size="5GB" if dtype == torch.float32 else "60KB")
    tokenizer.save_pretrained(folder)
    out = f"{folder}.gguf"
    run(program, "convert", folder, out, "--json")
    ids = tokenizer(TEXT)["input_ids"]
    same = run(program, "tokenize", out, "--text", TEXT, "--json")["ids"] == ids
    exact = new_model(config).double().eval()  # nothing computed was rounded to bf16
    exact.load_state_dict(model.double().state_dict())
    with torch.no_grad():
        wanted = exact(torch.tensor([ids])).logits[0].double()

    def error(*how):
        got = torch.tensor(run(program, "logits", out, "--ids", ",".join(map(str, ids)),
                               "--positions", "all", "--json", *how)["logits"], dtype=torch.float64)
        return ((got - wanted).abs().max() / wanted.abs().max()).item()

    print(f"{name:12} {dtype}: ids {'the same' if same else 'DIFFER'}, "
          f"reference {error('--backend', 'reference'):.2e}, "
          f"exact {error('--precision', 'exact', '--kv', 'f32'):.2e}, fast {error():.2e}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=list(CONFIGS))
    parser.add_argument("--shape", type=int, default=0, choices=range(len(SHAPES)))
    arguments = parser.parse_args()
    COMMON.update(SHAPES[arguments.shape])
    torch.manual_seed(1 + arguments.shape)
    tokenizer = make_tokenizer(arguments.text.read_text())
    for name in arguments.names:
        for dtype in (torch.float32, torch.bfloat16):
            with tempfile.TemporaryDirectory() as folder:
                check(arguments.program, name, dtype, tokenizer, f"{folder}/model")


if __name__ == "__main__":
    main()
