#!/usr/bin/env python3
"""Long runs against `edgerunner serve`. Minutes each, so they are run by hand, not by CI.

    soak.py PROGRAM MODEL isolation [--rounds 50]   16 clients, each with markers of its own, and a cache for
                                                    three: no foreign text, every answer as if it came alone
    soak.py PROGRAM MODEL drops [--cycles 1000]     clients that go away in the queue, in prefill and in
                                                    decode: everything is given back, soon
    soak.py PROGRAM MODEL mixed [--seconds 300]     all kinds of requests at once; for the build of the
                                                    preset tsan, whose reports fail the run

MODEL is any with a chat template. Prints its figures as one JSON document; exit status 1 where a promise
was not kept.
"""

import argparse
import concurrent.futures
import json
import random
import statistics
import sys
import time
import urllib.error

from serving import Server, wait_for

CLIENTS = 16


def marker(client, round_):
    """A word that no other client has: two letters of the client, six of the round."""
    source = random.Random(client * 1000 + round_)
    letters = "bcdfghjklmnpqrstvwxz"
    return letters[client] * 2 + "".join(source.choice(letters) for _ in range(6))


def isolation(program, model, arguments):
    context, most = 192, 16

    def prompt(key):
        word = marker(*key)
        return f"My word is {word}. I say my word again and again: {word} {word} {word} {word}"

    def ask(server, key):
        return server.complete(prompt(key), max_tokens=most)

    keys = [(client, round_) for round_ in range(arguments.rounds) for client in range(CLIENTS)]

    def all_rounds(server, client):
        return {(client, round_): ask(server, (client, round_)) for round_ in range(arguments.rounds)}

    together = {}
    with Server(program, model, "--parallel", str(CLIENTS), "--context", str(context),
                "--cache-tokens", str(3 * context)) as server:
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            for answers in pool.map(lambda client: all_rounds(server, client), range(CLIENTS)):
                together.update(answers)
        pages = server.metric("edgerunner_cache_pages")
        used = server.metric("edgerunner_cache_pages_used")
    with Server(program, model, "--parallel", "1", "--context", str(context)) as server:
        alone = {key: ask(server, key) for key in keys}
    words = {marker(*key): key for key in keys}
    foreign = [key for key, text in together.items()
               if any(words.get(word, key)[0] != key[0] for word in text.replace(".", " ").split())]
    own = sum(marker(*key) in text for key, text in together.items())
    different = [key for key in keys if together[key] != alone[key]]
    return {"requests": len(keys), "cache_pages": pages, "pages_used_at_the_end": used,
            "answers_with_their_own_marker": own, "answers_with_a_foreign_marker": len(foreign),
            "answers_that_differ_from_solo": len(different)}, not foreign and not different and used == 0


def drops(program, model, arguments):
    text = "word " * 1500
    seconds = {"queued": [], "prefill": [], "decode": []}

    def stream(server):
        connection = server.begin({"prompt": f"{random.random()} Once", "max_tokens": 1500, "temperature": 0,
                                   "ignore_eos": True, "stream": True})
        received = b""
        while b'"text"' not in received:  # it decodes
            part = connection.recv(4096)
            assert part, f"no token: {received!r}"
            received += part
        return connection

    def cycle(server, kind, number):
        running = lambda: server.metric("edgerunner_sequences_running")
        waiting = lambda: server.metric("edgerunner_sequences_waiting")
        if kind == "queued":
            others = [stream(server) for _ in range(2)]
            wait_for(lambda: running() == 2)
            queued = server.begin({"prompt": f"{number} {text}", "max_tokens": 10})
            wait_for(lambda: waiting() == 1)
            queued.close()
            seconds[kind].append(wait_for(lambda: waiting() == 0))
            for connection in others:
                connection.close()
        elif kind == "prefill":
            connection = server.begin({"prompt": f"{number} {text}", "max_tokens": 10})
            wait_for(lambda: running() == 1)
            connection.close()
            seconds[kind].append(wait_for(lambda: running() == 0))
        else:
            connection = stream(server)
            connection.close()
            seconds[kind].append(wait_for(lambda: running() == 0))
        wait_for(lambda: running() + waiting() == 0)

    with Server(program, model, "--parallel", "2", "--queue", "8", "--context", "2048",
                "--cache-tokens", "4096") as server:
        for name in ("one", "two"):  # the whole cache is in memory then
            server.complete(name + " word" * 2000, max_tokens=1)
        before = None
        for number in range(arguments.cycles):
            if number == min(100, arguments.cycles // 2):  # what is allocated once has been
                before = (server.resident_bytes(), server.open_files(), server.threads())
            cycle(server, ("queued", "prefill", "decode")[number % 3], number)
        after = (server.resident_bytes(), server.open_files(), server.threads())
        used = server.metric("edgerunner_cache_pages_used")
        # Every place is free: as many requests as there are places, and one is refused no place.
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda i: server.complete(f"{i} and", max_tokens=2), range(10)))
    slowest = max(max(times) for times in seconds.values())
    result = {"cycles": arguments.cycles, "memory_grown_mib": round((after[0] - before[0]) / 2**20, 2),
              "files_grown": after[1] - before[1], "threads_grown": after[2] - before[2], "pages_used": used}
    for kind, times in seconds.items():
        result[f"{kind}_freed_after_ms"] = {"median": round(1000 * statistics.median(times), 1),
                                            "slowest": round(1000 * max(times), 1)}
    kept = slowest < 0.2 and used == 0 and result["files_grown"] <= 0 and result["threads_grown"] <= 0
    return result, kept and after[0] - before[0] < 8 * 2**20


TOOLS = [{"type": "function", "function": {"name": "set", "parameters": {
    "type": "object", "properties": {"x": {"enum": [1, 2, 3]}, "y": {"type": "boolean"}},
    "required": ["x", "y"], "additionalProperties": False}}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {
    "type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}, "additionalProperties": False}}}


def chat(text, **options):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 12, **options}


def mixed(program, model, arguments):
    counts = {}
    ends = time.monotonic() + arguments.seconds

    def one(server, source):
        text = f"{source.random()} " + "word " * source.choice((1, 10, 100))
        kinds = {
            "chat": lambda: server.post("/v1/chat/completions", chat(text, n=2, logprobs=True, top_logprobs=3)),
            "schema": lambda: server.post("/v1/chat/completions", chat(text, response_format=SCHEMA)),
            "tools": lambda: server.post("/v1/chat/completions", chat(text, tools=TOOLS, tool_choice="required")),
            "completion": lambda: server.complete([text, "the same"], max_tokens=12, stop=["ab", "the"]),
            "embedding": lambda: server.post("/v1/embeddings", {"input": [text, "same"]}),
            "response": lambda: server.post("/v1/responses", {"input": text, "max_output_tokens": 12}),
            "tokenize": lambda: server.post("/tokenize", {"content": text}),
            "metrics": lambda: server.get("/metrics"),
            "page": lambda: server.get("/"),
            "stream": lambda: read_stream(server, text),
            "drop": lambda: drop(server, text, source.random() / 4),
            "error": lambda: refused(server),
        }
        kind = source.choice(list(kinds))
        try:
            kinds[kind]()
        except urllib.error.HTTPError as error:
            kind = f"{kind}: {error.code}"
        return kind

    def read_stream(server, text):
        with server.begin(chat(text, stream=True), "/v1/chat/completions") as connection:
            received = b""
            while b"[DONE]" not in received and not received.startswith(b"HTTP/1.1 429"):
                part = connection.recv(4096)
                assert part, f"a stream without an end: {received!r}"
                received += part

    def drop(server, text, delay):
        with server.begin({"prompt": text, "max_tokens": 200, "stream": True}):
            time.sleep(delay)

    def refused(server):
        server.post("/v1/chat/completions", chat("x", temperature=9))

    def client(server, number):
        source = random.Random(number)
        while time.monotonic() < ends:
            kind = one(server, source)
            counts[kind] = counts.get(kind, 0) + 1

    with Server(program, model, "--parallel", "3", "--queue", "2", "--context", "512", "--cache-tokens", "1024",
                TSAN_OPTIONS="halt_on_error=0 exitcode=66") as server:
        with concurrent.futures.ThreadPoolExecutor(arguments.clients) as pool:
            for _ in pool.map(lambda number: client(server, number), range(arguments.clients)):
                pass
        wait_for(lambda: server.metric("edgerunner_sequences_running") == 0)
        used = server.metric("edgerunner_cache_pages_used")
        status = server.stop()
    allowed = {"error: 400"}
    bad = [kind for kind in counts if ":" in kind and kind not in allowed and not kind.endswith("429")]
    return {"seconds": arguments.seconds, "clients": arguments.clients, "requests": dict(sorted(counts.items())),
            "pages_used_at_the_end": used, "exit_status": status}, status == 0 and not bad and used == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("run", choices=("isolation", "drops", "mixed"))
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=6)
    arguments = parser.parse_args()
    result, kept = globals()[arguments.run](arguments.program, arguments.model, arguments)
    print(json.dumps({"run": arguments.run, **result, "kept": kept}, indent=1))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
