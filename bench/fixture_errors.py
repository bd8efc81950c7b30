#!/usr/bin/env python3
"""Prints the table of docs/numerics.md: the program's logits and greedy text on reference fixtures.

    bench/fixture_errors.py [FOLDER]     with NAME.gguf and NAME.json; default ../shared/fixtures/models
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/release/bin/edgerunner"
FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
SETTINGS = {"reference": ["--backend", "reference"], "exact": ["--precision", "exact"],
            "fast": ["--precision", "fast"]}


def run(*arguments):
    done = subprocess.run([str(PROGRAM), *arguments, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def largest_error(model, fixture, setting):
    """The largest difference of a logit, as a fraction of the largest logit."""
    last = len(fixture["prompt"]) - 1
    expected = {**{int(p): row for p, row in fixture["logits"].items()},
                last: fixture["logits_last"]}
    result = run("logits", model, "--ids", ",".join(map(str, fixture["prompt"])), "--positions",
                 ",".join(map(str, sorted(expected))), *setting)
    worst = max(abs(a - b) for position, row in zip(result["positions"], result["logits"])
                for a, b in zip(row, expected[position]))
    return worst / max(abs(value) for row in expected.values() for value in row)


def same_text(model, fixture, setting):
    result = run("generate", model, "--ids", ",".join(map(str, fixture["prompt"])),
                 "--max-tokens", str(len(fixture["greedy"])), "--ignore-eos", *setting)
    return result["ids"] == fixture["greedy"]


def main():
    default = ROOT.parent / "shared/fixtures/models"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    print("| fixture | weights | reference | exact | fast | greedy text the same |")
    print("|---|---|---|---|---|---|")
    for path in sorted(folder.glob("*.json")):
        fixture = json.loads(path.read_text())
        if fixture["architecture"] not in FAMILIES or "moe" in path.stem:
            continue
        model = str(path.with_suffix(".gguf"))
        errors = [f"{largest_error(model, fixture, options):.1e}" for options in SETTINGS.values()]
        same = [name for name, options in SETTINGS.items() if same_text(model, fixture, options)]
        print(f"| {path.stem} | {fixture['weight_type']} | {' | '.join(errors)} | "
              f"{'all' if len(same) == len(SETTINGS) else ', '.join(same)} |")


if __name__ == "__main__":
    main()
