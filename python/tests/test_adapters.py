"""LoRA adapters, of tiny models whose logits Hugging Face's peft computes."""

from __future__ import annotations

import json
from pathlib import Path

import edgerunner
import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "tests" / "fixtures" / "lora"
MODEL = FOLDER / "llama.gguf"


def test_apply_as_in_peft() -> None:
    known = json.loads((FOLDER / "llama.json").read_text())
    for answer in known["answers"]:
        adapters = [(FOLDER / known["adapters"][use["id"]], use["scale"]) for use in answer["adapters"]]
        with edgerunner.Model(MODEL, precision="exact", adapters=adapters) as model:
            logits = model.logits(known["prompt"])
        expected = np.array(answer["logits"][str(len(known["prompt"]) - 1)])
        assert np.abs(logits - expected).max() < 1e-4 * np.abs(expected).max()


def test_are_chosen_by_generations() -> None:
    def ids(model: edgerunner.Model, adapters: dict[int, float] | None = None) -> list[int]:
        options: edgerunner.GenerateOptions = {"max_tokens": 8, "ignore_eos": True}
        if adapters is not None:
            options["adapters"] = adapters
        return model.generate([15, 47, 39], **options).summary().ids

    with edgerunner.Model(MODEL) as model:
        plain = ids(model)
    with edgerunner.Model(MODEL, adapters=[FOLDER / "llama-a.gguf"]) as model:
        assert ids(model, {}) == ids(model, {0: 0.0}) == plain
        assert ids(model) == ids(model, {0: 1.0}) != plain
        with pytest.raises(edgerunner.Error, match="no adapter with id 1"):
            ids(model, {1: 1.0})


def test_of_other_files_are_refused() -> None:
    with pytest.raises(edgerunner.Error, match="is no adapter"):
        edgerunner.Model(MODEL, adapters=[MODEL])
