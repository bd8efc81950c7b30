"""Generation and chat."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import edgerunner
import pytest

MESSAGES = [{"role": "user", "content": "he"}]


def test_streams_what_the_tokens_say(tiny: edgerunner.Model) -> None:
    generation = tiny.generate("the end", max_tokens=24, ignore_eos=True)
    pieces = list(generation)
    assert all(pieces)
    summary = generation.summary()
    assert summary.finish_reason == "length"
    assert summary.generated_tokens == len(summary.ids) == 24
    again = tiny.generate(tiny.tokenize("the end"), max_tokens=24, ignore_eos=True)
    assert again.read() == "".join(pieces)
    assert list(again) == []


def test_draws_the_same_for_the_same_seed(tiny: edgerunner.Model) -> None:
    def draw(seed: int) -> str:
        return tiny.generate("the", max_tokens=40, temperature=1, seed=seed).read()

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_guesses_ahead_without_changing_the_text(tiny_path: Path) -> None:
    with edgerunner.Model(tiny_path) as model:
        plain = model.generate("the end", max_tokens=60, ignore_eos=True).summary().ids
        with pytest.raises(edgerunner.Error, match="guess"):
            model.generate("the end", speculate="lookup").read()
    choices: list[edgerunner.GenerateOptions] = [
        {"max_tokens": 60, "ignore_eos": True},
        {"max_tokens": 60, "ignore_eos": True, "speculate": "off"},
        {"max_tokens": 60, "ignore_eos": True, "speculate": "lookup", "draft_tokens": 2},
    ]
    with edgerunner.Model(tiny_path, speculate="on_request", draft_tokens=8) as model:
        for options in choices:
            summary = model.generate("the end", **options).summary()
            assert summary.ids == plain
            assert 0 <= summary.accepted_tokens <= summary.drafted_tokens
            options["logit_bias"] = {7: 100}  # a text that repeats itself
            summary = model.generate("the end", **options).summary()
            assert (summary.drafted_tokens > 0) == (options.get("speculate") == "lookup")
        with pytest.raises(edgerunner.Error, match="speculate is 'often'"):
            model.generate("the end", speculate="often")  # type: ignore[arg-type]


def test_guesses_by_a_draft_model(tiny_path: Path) -> None:
    with edgerunner.Model(tiny_path, draft=tiny_path, draft_confidence=0) as model:
        summary = model.generate("the end", max_tokens=60, ignore_eos=True).summary()
        assert summary.drafted_tokens > 0
        plain = model.generate("the end", max_tokens=60, ignore_eos=True, speculate="off").summary()
        assert summary.ids == plain.ids and plain.drafted_tokens == 0
    with pytest.raises(edgerunner.Error, match="draft_confidence is 2"):
        edgerunner.Model(tiny_path, draft=tiny_path, draft_confidence=2)


def test_takes_every_option(tiny: edgerunner.Model) -> None:
    options: edgerunner.GenerateOptions = {
        "max_tokens": 8,
        "temperature": 0.7,
        "top_k": 40,
        "top_p": 0.9,
        "min_p": 0.01,
        "repeat_penalty": 1.1,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.1,
        "penalty_last_n": -1,
        "logit_bias": {100: -float("inf")},
        "seed": 3,
        "stop": ["zzz", "yyy"],
        "stop_tokens": [7],
        "ignore_eos": True,
        "circular_context": True,
        "keep_tokens": 2,
    }
    assert 100 not in tiny.generate("the", **options).summary().ids
    assert tiny.generate("the", max_tokens=3, logit_bias={100: 1e6}).summary().ids == [100] * 3
    assert tiny.generate("the", stop_tokens=[100], logit_bias={100: 1e6}).read() == ""


def test_ends_before_a_stop_string(tiny: edgerunner.Model) -> None:
    text = tiny.generate("the", max_tokens=64, ignore_eos=True).read()
    stop = next(c for c in text if c.isascii() and c.isalpha())
    generation = tiny.generate("the", max_tokens=64, ignore_eos=True, stop=stop)
    assert generation.read() == text[: text.index(stop)]
    assert generation.summary().finish_reason == "stop"


def test_writes_what_a_schema_or_a_grammar_allows(tiny: edgerunner.Model) -> None:
    schema = {"enum": ["he", "the"]}
    assert json.loads(tiny.generate("the", json_schema=schema).read()) in schema["enum"]
    assert json.loads(tiny.generate("the", json_schema=json.dumps(schema)).read())
    assert tiny.generate("the", grammar='root ::= "he" | "in"').read() in ("he", "in")


def test_refuses_wrong_options(tiny: edgerunner.Model) -> None:
    with pytest.raises(TypeError, match="temprature"):
        tiny.generate("the", temprature=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="max_tokens: 'many'"):
        tiny.generate("the", max_tokens="many")  # type: ignore[arg-type]
    for seed in (-1, 2**64):
        with pytest.raises(TypeError, match=f"seed: {seed}"):
            tiny.generate("the", seed=seed)
    with pytest.raises(edgerunner.Error, match="top_p") as caught:
        tiny.generate("the", top_p=2)
    assert caught.value.code == "invalid_argument"
    with pytest.raises(edgerunner.Error, match="nothing"):
        tiny.generate("the", grammar="root ::= nothing")
    with pytest.raises(edgerunner.Error) as caught:
        tiny.generate([5] * 1025)
    assert caught.value.code == "context_full"


def endless(model: edgerunner.Model) -> edgerunner.Generation:
    return model.generate("the", ignore_eos=True, circular_context=True)


def test_ends_where_it_is_closed(tiny: edgerunner.Model) -> None:
    with endless(tiny) as generation:
        assert next(generation)
    assert generation.summary().finish_reason == "cancelled"


def test_frees_its_place_where_it_is_forgotten(tiny_path: Path) -> None:
    with edgerunner.Model(tiny_path, max_sequences=1) as model:
        for _ in endless(model):
            break
        assert model.generate("the", max_tokens=2).summary().finish_reason in ("length", "stop")


def test_is_cancelled_by_its_model(tiny_path: Path) -> None:
    model = edgerunner.Model(tiny_path)
    generations = [endless(model), endless(model)]
    model.cancel_all()
    assert generations[0].summary().finish_reason == "cancelled"
    model.close()
    assert generations[1].summary().finish_reason == "cancelled"


def test_closes_a_model_that_another_thread_waits_for(tiny_path: Path) -> None:
    model = edgerunner.Model(tiny_path)
    generation = endless(model)
    reader = threading.Thread(target=generation.read)
    reader.start()
    model.close()
    reader.join()
    assert generation.summary().finish_reason == "cancelled"


def test_gives_each_thread_its_own(tiny: edgerunner.Model) -> None:
    def draw(seed: int) -> list[int]:
        running = tiny.generate("the", max_tokens=32, temperature=1, seed=seed, ignore_eos=True)
        return running.summary().ids

    alone = [draw(seed) for seed in range(6)]
    together: list[list[int]] = [[] for _ in alone]

    def run(seed: int) -> None:
        together[seed] = draw(seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_gives_each_piece_to_one_of_several_readers(tiny: edgerunner.Model) -> None:
    whole = tiny.generate("the", max_tokens=200, ignore_eos=True).read()
    generation = tiny.generate("the", max_tokens=200, ignore_eos=True)
    parts: list[str] = []
    readers = [threading.Thread(target=lambda: parts.extend(generation)) for _ in range(3)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert sorted("".join(parts)) == sorted(whole)


# The second generation waits for the first, which never ends: next() gives nothing until Ctrl-C.
INTERRUPTED = """
import os, signal, sys, threading, edgerunner
model = edgerunner.Model(sys.argv[1], max_sequences=1)
options = {"ignore_eos": True, "circular_context": True}
running = model.generate("the", **options)
next(running)
waiting = model.generate("the", **options)
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    next(waiting)
except KeyboardInterrupt:
    running.close()
    waiting.close()  # which next() has done, unless the signal came before it
    print(waiting.summary().finish_reason)
"""


def test_is_interrupted_by_ctrl_c(tiny_path: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, tiny_path], capture_output=True, text=True, timeout=120
    )
    assert (process.stdout, process.returncode) == ("cancelled\n", 0), process.stderr


def test_answers_a_conversation(tiny: edgerunner.Model) -> None:
    prompt = tiny.render_chat(MESSAGES)
    assert prompt == "user: he\nassistant: "
    text = tiny.generate(prompt, max_tokens=16, ignore_eos=True).read()
    with tiny.chat(MESSAGES, max_tokens=16, ignore_eos=True) as reply:
        assert reply.read() == text
        assert reply.reasoning == ""
        assert reply.tool_calls == []
        assert reply.summary().reused_tokens > 0
    with pytest.raises(edgerunner.Error, match="role"):
        tiny.chat([{"content": "he"}])


def test_answers_as_a_chat(smollm2: edgerunner.Model) -> None:
    question = {"role": "user", "content": "What is the capital of France?"}
    reply = smollm2.chat([question], max_tokens=32)
    answer = "".join(reply)
    assert "Paris" in answer
    assert reply.summary().finish_reason == "stop"
    follow_up = [question, {"role": "assistant", "content": answer}, question]
    reused = smollm2.chat(follow_up, max_tokens=1).summary().reused_tokens
    assert reused >= reply.summary().prompt_tokens // 64 * 64
