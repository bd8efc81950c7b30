#!/usr/bin/env python3
"""How long a short request waits for its first token beside a long prompt, and what an idle server uses.

    serve_latency.py PROGRAM MODEL [--prompt 4000] [--repetitions 5] [--idle 10]

The long prompt is in prefill when the short request is sent, and still is when its token comes. Prints one
JSON document; times in milliseconds. A chunk's time is what `serve --longest-step` bounds, 100 ms.
"""

import argparse
import concurrent.futures
import json
import pathlib
import statistics
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parent.parent / "tests/server"))
from serving import Server, wait_for  # noqa: E402


def first_token(server, prompt):
    """Seconds from sending a request to the first token of its stream."""
    begun = time.monotonic()
    with server.begin({"prompt": prompt, "max_tokens": 2, "temperature": 0, "stream": True}) as connection:
        received = b""
        while b'"text"' not in received:
            part = connection.recv(4096)
            assert part, f"no first token: {received!r}"
            received += part
    return time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--prompt", type=int, default=4000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--idle", type=float, default=10)
    arguments = parser.parse_args()
    with Server(arguments.program, arguments.model) as server:
        time.sleep(1)
        used, begun = server.cpu_seconds(), time.monotonic()
        time.sleep(arguments.idle)
        idle = (server.cpu_seconds() - used) / (time.monotonic() - begun)
        alone = [first_token(server, f"{i}, how do you do?") for i in range(arguments.repetitions)]
        beside, long_times = [], []
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for i in range(arguments.repetitions):
                begun = time.monotonic()
                long = pool.submit(server.complete, f"{time.time()} " + " word" * arguments.prompt, max_tokens=1)
                wait_for(lambda: server.metric("edgerunner_sequences_running") == 1)
                time.sleep(0.2)
                beside.append(first_token(server, f"{i} and {time.time()}, how do you do?"))
                assert not long.done(), "the long prompt was over before"
                long.result()
                long_times.append(time.monotonic() - begun)
    milliseconds = lambda values: {"median": round(1000 * statistics.median(values)),
                                   "slowest": round(1000 * max(values))}
    print(json.dumps({"idle_cpu_percent": round(100 * idle, 3), "short_alone": milliseconds(alone),
                      "short_beside_long": milliseconds(beside), "long": milliseconds(long_times)}, indent=1))


if __name__ == "__main__":
    main()
