#!/usr/bin/env python3
"""Drives `edgerunner serve` with the official openai client, and with plain sockets.

    openai_client_test.py PROGRAM MODEL [-k NAME]

MODEL is SmolLM2-135M-Instruct, as scripts/fetch_model.sh fetches it. Needs the package openai.
Every function test_* is a check; the last line says how many passed.
"""

import argparse
import base64
import concurrent.futures
import json
import math
import re
import signal
import struct
import sys
import time
import traceback

import openai

from serving import Server, wait_for

EMOJI = "\U0001f600"


def serve(program, model, *options):
    """A server, with the client that goes with it."""
    server = Server(program, model, *options)
    server.client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    return server


def ask(server, text, **options):
    options.setdefault("temperature", 0)
    options.setdefault("max_tokens", 24)
    return server.client.chat.completions.create(
        model="any", messages=[{"role": "user", "content": text}], **options)


def streamed(server, text, **options):
    """Content, tokens of the log probabilities and finish reason of a streamed answer."""
    content, tokens, reason, usage = "", [], None, None
    for chunk in ask(server, text, stream=True, stream_options={"include_usage": True}, **options):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reason = choice.finish_reason or reason
            if choice.logprobs:
                tokens += [entry.token for entry in choice.logprobs.content]
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    return content, tokens, reason


def expect_error(kind, field, call):
    try:
        call()
    except kind as error:
        assert error.body["param"] == field, error.body
        return error
    raise AssertionError(f"no {kind.__name__}")


def test_models(server):
    (model,) = server.client.models.list().data
    assert "SmolLM2" in model.id, model
    assert server.client.models.retrieve(model.id) == model
    try:
        server.client.models.retrieve("another")
        raise AssertionError("no error")
    except openai.NotFoundError:
        pass


def test_chat_knows_the_capital(server):
    answer = ask(server, "What is the capital of France?")
    assert answer.choices[0].message.role == "assistant"
    assert answer.usage.prompt_tokens > 10
    assert answer.usage.completion_tokens <= 24


def test_stream_equals_whole(server):
    for options in ({}, {"stop": ["ital of", "xyzzy"]}, {"logprobs": True, "top_logprobs": 3},
                    {"logprobs": True, "stop": [" of"]}, {"seed": 7, "temperature": 1.5}):
        whole = ask(server, "What is the capital of France? Use an emoji.", **options).choices[0]
        content, tokens, reason = streamed(server, "What is the capital of France? Use an emoji.", **options)
        assert content == whole.message.content, (options, content, whole)
        assert reason == whole.finish_reason
        if "logprobs" in options:
            assert tokens == [entry.token for entry in whole.logprobs.content], options


def test_split_characters(server):
    """Characters of several tokens: forced by a bias, since the model seldom writes them."""
    ids = server.post("/tokenize", {"content": EMOJI})["tokens"]
    assert len(ids) > 1, "the character is one token: the test says nothing"
    for count in range(1, 9):
        options = {"max_tokens": count, "logit_bias": {str(id): 50 for id in ids}, "seed": count,
                   "temperature": 1, "logprobs": True}
        whole = ask(server, "Smile.", **options).choices[0]
        content, tokens, _ = streamed(server, "Smile.", **options)
        assert content == whole.message.content, count
        assert tokens == [entry.token for entry in whole.logprobs.content]


def test_choices_and_seed(server):
    answer = ask(server, "Tell me a story.", n=3, seed=5, temperature=1, max_tokens=16)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    texts = [choice.message.content for choice in answer.choices]
    assert len(set(texts)) == 3, texts
    again = ask(server, "Tell me a story.", seed=5, temperature=1, max_tokens=16)
    assert again.choices[0].message.content == texts[0]


def test_logprobs(server):
    answer = ask(server, "Say yes.", logprobs=True, top_logprobs=5, max_tokens=4)
    for entry in answer.choices[0].logprobs.content:
        assert entry.logprob == max(top.logprob for top in entry.top_logprobs)
        assert len(entry.top_logprobs) == 5
        assert sum(math.exp(top.logprob) for top in entry.top_logprobs) <= 1.0001
    joined = b"".join(bytes(entry.bytes) for entry in answer.choices[0].logprobs.content)
    assert joined.decode() == answer.choices[0].message.content


def test_logit_bias(server):
    first = server.client.completions.create(model="any", prompt="1 2 3", max_tokens=1, temperature=0, logprobs=1)
    token = first.choices[0].logprobs.tokens[0]
    (banned,) = server.post("/tokenize", {"content": token})["tokens"]
    other = server.client.completions.create(model="any", prompt="1 2 3", max_tokens=1, temperature=0,
                                             logit_bias={str(banned): -100})
    assert other.choices[0].text != first.choices[0].text


def test_completions(server):
    answer = server.client.completions.create(model="any", prompt=["The capital of France is", "2 + 2 ="],
                                              max_tokens=3, temperature=0, echo=True)
    assert answer.choices[0].text.startswith("The capital of France is Paris")
    assert answer.choices[1].text.startswith("2 + 2 =")
    parts = server.client.completions.create(model="any", prompt="The capital of France is", max_tokens=3,
                                             temperature=0, stream=True)
    text = "".join(part.choices[0].text for part in parts)
    assert "The capital of France is" + text == answer.choices[0].text


WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "The weather in a city.",
    "parameters": {"type": "object", "required": ["city", "days"], "additionalProperties": False,
                   "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "maximum": 9}}}}}
CLOCK = {"type": "function", "function": {"name": "clock"}}


def test_tools(server):
    """The model is too small to call one of itself; the request must take them."""
    for choice in ("auto", "none"):
        answer = ask(server, "What is the weather in Paris?", tools=[WEATHER], tool_choice=choice)
        assert answer.choices[0].finish_reason in ("stop", "length", "tool_calls")
    expect_error(openai.BadRequestError, "tools", lambda: ask(server, "Hi", tools=[{"type": "function"}]))


def test_demanded_tools(server):
    named = {"type": "function", "function": {"name": "weather"}}
    for options in ({"tool_choice": "required"}, {"tool_choice": named}, {"tool_choice": named, "temperature": 1.5}):
        options = {"tools": [WEATHER, CLOCK], "parallel_tool_calls": False, "max_tokens": 200, "seed": 3, **options}
        choice = ask(server, "What is the weather in Paris?", **options).choices[0]
        assert choice.finish_reason == "tool_calls", choice
        (call,) = choice.message.tool_calls
        arguments = json.loads(call.function.arguments)
        if call.function.name == "weather":
            assert arguments["city"] in ("Paris", "Rome") and arguments["days"] <= 9, arguments
        else:
            assert (call.function.name, arguments) == ("clock", {}) and options["tool_choice"] == "required"
        name, text = "", ""
        for chunk in ask(server, "What is the weather in Paris?", stream=True, **options):
            for delta in chunk.choices[0].delta.tool_calls or []:
                name += delta.function.name or ""
                text += delta.function.arguments or ""
        assert (name, text) == (call.function.name, call.function.arguments)
    flat = {"type": "function", **WEATHER["function"], "strict": True}
    answer = server.client.responses.create(model="any", input="Paris?", tools=[flat], tool_choice="required",
                                            max_output_tokens=200, temperature=0)
    assert answer.output[0].type == "function_call" and json.loads(answer.output[0].arguments)["city"]
    expect_error(openai.BadRequestError, "tool_choice", lambda: ask(server, "Hi", tool_choice="required"))


def test_users_write_no_control_tokens(server):
    """What looks like the end of a turn in a message is text: more tokens than the control token's one."""
    plain = ask(server, "a", max_tokens=1).usage.prompt_tokens
    marked = ask(server, "a<|im_end|>", max_tokens=1).usage.prompt_tokens
    assert marked > plain + 3, (plain, marked)


def test_structured_output(server):
    schema = {"type": "object", "required": ["city", "population"], "additionalProperties": False,
              "properties": {"city": {"type": "string", "maxLength": 20},
                             "population": {"type": "integer", "minimum": 0, "maximum": 99999999}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
    answer = ask(server, "Describe Paris as JSON.", response_format=wanted, max_tokens=100).choices[0]
    assert answer.finish_reason == "stop"
    value = json.loads(answer.message.content)
    assert set(value) == {"city", "population"} and isinstance(value["population"], int)
    free = ask(server, "Describe Paris as JSON.", response_format={"type": "json_object"}, max_tokens=200)
    assert free.choices[0].message.content.lstrip().startswith("{")
    unenforceable = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"not": {}}}}
    expect_error(openai.BadRequestError, "response_format",
                 lambda: ask(server, "Hi", response_format=unenforceable))


def test_embeddings(server):
    texts = ["A cat sat on the mat.", "A kitten lay on the rug.", "Quarterly revenue fell by 3 %."]
    answer = server.client.embeddings.create(model="any", input=texts, encoding_format="float")
    vectors = [entry.embedding for entry in answer.data]
    for vector in vectors:
        assert abs(sum(value * value for value in vector) - 1) < 1e-4
    dot = lambda a, b: sum(x * y for x, y in zip(a, b))
    assert dot(vectors[0], vectors[1]) > dot(vectors[0], vectors[2])
    alone = server.client.embeddings.create(model="any", input=texts[1], encoding_format="float")
    assert alone.data[0].embedding == vectors[1], "an embedding depends on its neighbours"
    raw = server.client.embeddings.with_raw_response.create(model="any", input=texts[1], encoding_format="base64")
    packed = base64.b64decode(json.loads(raw.text)["data"][0]["embedding"])
    assert max(abs(a - b) for a, b in zip(struct.unpack(f"{len(packed) // 4}f", packed), vectors[1])) < 1e-7
    expect_error(openai.BadRequestError, "input", lambda: server.client.embeddings.create(model="any", input=""))


def test_responses(server):
    answer = server.client.responses.create(model="any", input="What is the capital of France?", temperature=0,
                                            max_output_tokens=24, instructions="Be short.")
    assert answer.output_text
    text, last = "", None
    with server.client.responses.stream(model="any", input="What is the capital of France?", temperature=0,
                                        max_output_tokens=24, instructions="Be short.") as events:
        for event in events:
            if event.type == "response.output_text.delta":
                text += event.delta
            last = event
    assert text == answer.output_text
    assert last.type in ("response.completed", "response.incomplete"), last
    schema = {"type": "object", "required": ["a"], "additionalProperties": False, "properties": {"a": {"enum": [1, 2]}}}
    answer = server.client.responses.create(model="any", input="Hi", max_output_tokens=60, temperature=0, text={
        "format": {"type": "json_schema", "name": "n", "schema": schema}})
    assert json.loads(answer.output_text)["a"] in (1, 2)
    expect_error(openai.BadRequestError, "input", lambda: server.client.responses.create(model="any", input=[]))


def test_errors(server):
    expect_error(openai.BadRequestError, "temperature", lambda: ask(server, "Hi", temperature=9))
    expect_error(openai.BadRequestError, "messages",
                 lambda: server.client.chat.completions.create(model="any", messages=[]))
    error = expect_error(openai.BadRequestError, "messages", lambda: ask(server, "word " * 9000))
    numbers = [int(number) for number in re.findall(r"\d+", error.body["message"])]
    assert max(numbers) > 9000 and 8192 in numbers, error.body
    assert error.code == "context_length_exceeded"
    try:
        server.client.get("/nothing", cast_to=object)
        raise AssertionError("no error")
    except openai.NotFoundError:
        pass


def test_isolation(server_of):
    """Many clients with markers of their own, and a cache for three: every answer is as if alone."""
    server = server_of("--parallel", "16", "--context", "256", "--cache-tokens", "768")
    try:
        def question(client, round_):
            return f"Marker {client * 1000 + round_}. Repeat the marker {client * 1000 + round_} once."
        keys = [(client, round_) for client in range(16) for round_ in range(3)]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            together = list(pool.map(lambda key: ask(server, question(*key), max_tokens=8).choices[0].message.content,
                                     keys))
        for key, text in list(zip(keys, together))[::3]:
            assert ask(server, question(*key), max_tokens=8).choices[0].message.content == text, key
    finally:
        server.stop()


def drop(server, body, delay):
    """Connects, sends a request and goes away."""
    with server.begin(body):
        time.sleep(delay)


def test_dropped_clients_leave_nothing(server_of):
    server = server_of("--context", "2048", "--cache-tokens", "2048")
    try:
        drop_clients(server)
    finally:
        server.stop()


def drop_clients(server):
    idle = lambda: server.metric("edgerunner_sequences_running") + server.metric("edgerunner_sequences_waiting") == 0
    server.complete("one" + " word" * 2000, max_tokens=1)  # the whole cache is in memory then
    slowest = 0
    before = 0
    for cycle in range(60):
        if cycle == 20:
            before = server.resident_bytes()
        body = {"prompt": f"{cycle} " + "word " * (700 if cycle % 2 else 1), "max_tokens": 400, "temperature": 0}
        drop(server, body, 0.002 * (cycle % 20))
        slowest = max(slowest, wait_for(idle))
    # A request that was read after its client had gone may come even now, and must go.
    wait_for(lambda: idle() and server.metric("edgerunner_cache_pages_used") == 0)
    grown = server.resident_bytes() - before
    print(f"   slowest release {slowest * 1000:.0f} ms, memory grew by {grown / 2**20:.1f} MiB in 40 cycles")
    assert grown < 8 * 2**20


def test_sigterm_drains(server_of):
    server = server_of()
    parts = iter(ask(server, "Tell me a story.", stream=True, max_tokens=40))
    next(parts)
    server.process.send_signal(signal.SIGTERM)
    assert [part for part in parts][-1].choices[0].finish_reason in ("length", "stop")
    assert server.process.wait(timeout=120) == 0


def test_key_and_queue(server_of):
    server = server_of("--api-key", "secret", "--parallel", "1", "--queue", "0")
    try:
        try:
            server.client.models.list()
            raise AssertionError("no error")
        except openai.AuthenticationError:
            pass
        server.client = server.client.with_options(api_key="secret")
        endless = ask(server, "Tell me a story.", stream=True, max_tokens=8000, extra_body={"ignore_eos": True})
        next(iter(endless))
        try:
            ask(server, "Hi")
            raise AssertionError("no error")
        except openai.RateLimitError:
            pass
        endless.close()
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("-k", default="", help="only tests whose name has this")
    arguments = parser.parse_args()
    tests = [value for name, value in globals().items() if name.startswith("test_") and arguments.k in name]
    failed = 0
    server = serve(arguments.program, arguments.model)
    for test in tests:
        begun = time.monotonic()
        try:
            if test.__code__.co_varnames[0] == "server_of":
                test(lambda *options: serve(arguments.program, arguments.model, *options))
            else:
                test(server)
            verdict = "ok"
        except Exception:
            traceback.print_exc()
            verdict = "FAILED"
            failed += 1
        print(f"{verdict:6} {time.monotonic() - begun:5.1f} s  {test.__name__}", flush=True)
    if server.stop() != 0:
        failed += 1
        print("FAILED: the server did not end well")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
