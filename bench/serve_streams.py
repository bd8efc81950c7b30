#!/usr/bin/env python3
"""Tokens a second of concurrent streams: `edgerunner serve`, and llama-cpp-python's server.

    serve_streams.py PROGRAM MODEL [--peer PYTHON] [--streams 1,8] [--tokens 64] [--threads N]

PYTHON has llama-cpp-python with its server. Each stream continues a prompt of its own, greedily; the time
is from the first request to the last token, and the best of three runs counts. The servers run one after
the other, with the same file and number of threads.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.append(str(pathlib.Path(__file__).parent.parent / "tests/server"))
from serving import Server  # noqa: E402

# What a model doesn't come to an end of.
PROMPTS = [f"The numbers in their order: {n}, {n + 1}, {n + 2}, {n + 3}, {n + 4}," for n in range(100, 900, 100)]
RUNS = 3


def stream(url, prompt, tokens):
    """How many tokens came."""
    body = {"model": "any", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True}
    request = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        events = [json.loads(line[6:]) for line in answer if line.startswith(b"data: {")]
    if any(event["choices"][0]["finish_reason"] == "length" for event in events):
        return tokens
    return sum(event["choices"][0]["text"] != "" for event in events)


def speeds(url, arguments):
    result = {}
    with concurrent.futures.ThreadPoolExecutor(max(arguments.streams)) as pool:
        for streams in arguments.streams:
            best = 0
            for _ in range(RUNS):
                begun = time.monotonic()
                count = sum(pool.map(lambda prompt: stream(url, prompt, arguments.tokens), PROMPTS[:streams]))
                best = max(best, count / (time.monotonic() - begun))
            result[f"streams_{streams}"] = round(best, 1)
    return result


def measure_peer(arguments):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    threads = str(arguments.threads)
    process = subprocess.Popen(
        [arguments.peer, "-m", "llama_cpp.server", "--model", arguments.model, "--port", str(port), "--n_threads",
         threads, "--n_threads_batch", threads, "--n_ctx", "2048", "--interrupt_requests", "false"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                urllib.request.urlopen(f"{url}/v1/models").read()
                break
            except urllib.error.URLError:
                assert process.poll() is None, "the other server did not start"
                time.sleep(0.2)
        return speeds(url, arguments)
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--peer")
    parser.add_argument("--streams", type=lambda text: [int(n) for n in text.split(",")], default=[1, 8])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    result = {"tokens_a_stream": arguments.tokens, "threads": arguments.threads}
    with Server(arguments.program, arguments.model, "--threads", str(arguments.threads),
                "--context", "2048") as server:
        result["edgerunner"] = speeds(server.url, arguments)
    if arguments.peer:
        result["llama-cpp-python"] = measure_peer(arguments)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
