"""Loading, text and ids, logits and embeddings."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import edgerunner
import numpy as np
import pytest


def test_tells_what_a_model_is(tiny: edgerunner.Model) -> None:
    assert tiny.info.architecture == "llama"
    assert tiny.info.context == 1024
    assert tiny.info.embedding_size == 64
    assert tiny.info.backend == "cpu"
    assert "tiny" in repr(tiny)


def test_reports_progress(tiny_path: Path) -> None:
    fractions: list[float] = []
    edgerunner.Model(tiny_path, progress=fractions.append).close()
    assert fractions == sorted(fractions)
    assert fractions[0] == 0
    assert fractions[-1] == 1


def test_stops_loading_where_the_progress_function_raises(tiny_path: Path) -> None:
    def stop(fraction: float) -> None:
        raise LookupError(str(fraction))

    with pytest.raises(LookupError, match="0.0"):
        edgerunner.Model(tiny_path, progress=stop)


@pytest.mark.parametrize("option", ["backend", "precision", "kv"])
def test_names_the_option_that_is_none(tiny_path: Path, option: str) -> None:
    with pytest.raises(edgerunner.Error, match=option) as caught:
        edgerunner.Model(tiny_path, **{option: "best"})  # type: ignore[arg-type]
    assert caught.value.code == "invalid_argument"


def test_maps_errors(tiny_path: Path, tmp_path: Path) -> None:
    with pytest.raises(edgerunner.Error, match="missing.gguf") as caught:
        edgerunner.Model(tmp_path / "missing.gguf")
    assert caught.value.code == "io"
    with pytest.raises(edgerunner.Error, match="test_model.py") as caught:
        edgerunner.Model(__file__)
    assert caught.value.code == "invalid_file"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.code) == (str(caught.value), "invalid_file")


def test_refuses_a_closed_model(tiny_path: Path) -> None:
    with edgerunner.Model(tiny_path) as model:
        assert model.tokenize("the")
    with pytest.raises(ValueError, match="closed"):
        model.tokenize("the")
    model.close()


def test_turns_text_into_ids_and_back(tiny: edgerunner.Model) -> None:
    ids = tiny.tokenize("the end")
    assert ids[0] == 1
    assert tiny.tokenize("the end", add_special=False) == ids[1:]
    assert tiny.tokenize(b"the end") == ids
    assert tiny.detokenize(ids) == "the end"
    assert tiny.tokenize("</s>", add_special=False, parse_special=True) == [2]
    assert tiny.detokenize([2], special=True) == "</s>"
    cut = tiny.tokenize("\U0001f600", add_special=False)[:-1]
    assert tiny.detokenize(cut).endswith("\N{REPLACEMENT CHARACTER}")
    with pytest.raises(edgerunner.Error, match="100000"):
        tiny.detokenize([100000])


def test_gives_the_logits_that_transformers_gives(fixture_path: Path) -> None:
    expected = json.loads(fixture_path.with_suffix(".json").read_text())
    with edgerunner.Model(fixture_path, precision="exact") as model:
        for position, logits in expected["logits"].items():
            given = model.logits(expected["prompt"][: int(position) + 1])
            assert given.dtype == np.float32
            assert np.abs(given - logits).max() <= 1e-4 * expected["max_abs_logit"]


def test_refuses_ids_outside_the_vocabulary(tiny: edgerunner.Model) -> None:
    for ids in [[], [-1], [100000]]:
        with pytest.raises(edgerunner.Error) as caught:
            tiny.logits(ids)
        assert caught.value.code == "invalid_argument"
    with pytest.raises(edgerunner.Error) as caught:
        tiny.logits([5] * 1025)
    assert caught.value.code == "context_full"


def test_gives_embeddings_of_length_1(tiny: edgerunner.Model) -> None:
    one = tiny.embed("the end")
    assert one.shape == (64,)
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(tiny.embed(tiny.tokenize("the end")), one)
    assert np.array_equal(tiny.embed(["in", "the end"])[1], one)
    assert not np.array_equal(tiny.embed("the end", pooling="last"), one)
    with pytest.raises(edgerunner.Error, match="pooling"):
        tiny.embed("the end", pooling="sum")  # type: ignore[arg-type]
    with pytest.raises(edgerunner.Error, match="no tokens"):
        tiny.embed([])
    with pytest.raises(TypeError, match="bytes"):
        tiny.embed(b"the end")


def test_finds_texts_alike(smollm2: edgerunner.Model) -> None:
    cat, kitten, law = smollm2.embed(
        ["The cat sleeps.", "A kitten is sleeping.", "Parliament passed the budget law."]
    )
    assert cat @ kitten > cat @ law
