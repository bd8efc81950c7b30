#!/usr/bin/env python3
"""Measures EdgeRunner and llama.cpp alternately on the same GGUF file and prints the ratios.

    python3 -m venv venv && venv/bin/pip install llama-cpp-python
    venv/bin/python bench/compare_llamacpp.py --model MODEL.gguf

Each round runs, one process after another, `edgerunner bench` and llama.cpp through
llama-cpp-python's low-level API (llama_decode; n_batch = n_ubatch = 512, f16 cache), with flash
attention on and off. A machine's speed drifts over minutes, so only medians over alternating rounds
are compared, and of llama.cpp's two settings the faster one for each test.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_TESTS = "prefill:16,prefill:128,prefill:512,prefill:2048,decode:0,decode:2048"
PEERS = {"flash attention on": True, "flash attention off": False}


def parse_tests(text):
    """"prefill:TOKENS" or "decode:DEPTH", comma-separated -> [(kind, number)]."""
    tests = []
    for item in text.split(","):
        kind, _, number = item.strip().partition(":")
        if kind not in ("prefill", "decode") or not number.isdigit():
            raise argparse.ArgumentTypeError(f"'{item}' is not prefill:TOKENS or decode:DEPTH")
        tests.append((kind, int(number)))
    return tests


def peer_worker(arguments):
    """Runs in a process of its own: every test on llama.cpp, printed as JSON."""
    import llama_cpp
    from llama_cpp import llama_cpp as api

    lengths = [n + (arguments.decode if kind == "decode" else 0) for kind, n in arguments.tests]
    quiet = api.llama_log_callback(lambda level, text, data: None)  # must outlive the calls
    api.llama_log_set(quiet, None)
    api.llama_backend_init()
    model = api.llama_model_load_from_file(str(arguments.model).encode(),
                                           api.llama_model_default_params())
    if not model:
        sys.exit("llama.cpp could not load the model")
    params = api.llama_context_default_params()
    params.n_ctx = max(lengths) + 1
    params.n_batch = params.n_ubatch = 512
    params.n_threads = params.n_threads_batch = arguments.threads
    params.flash_attn_type = (api.LLAMA_FLASH_ATTN_TYPE_ENABLED if arguments.flash_attention
                              else api.LLAMA_FLASH_ATTN_TYPE_DISABLED)
    context = api.llama_init_from_model(model, params)
    if not context:
        sys.exit("llama.cpp could not make a context")
    memory = api.llama_get_memory(context)
    vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))

    def tokens(count, salt):
        # Any tokens do: the time of a forward pass doesn't depend on which they are.
        return (api.llama_token * count)(*((i * 7919 + salt * 104729 + 13) % vocabulary
                                           for i in range(count)))

    def decode(ids, begin, count):
        pointer = api.ctypes.cast(
            api.ctypes.byref(ids, begin * api.ctypes.sizeof(api.llama_token)),
            api.ctypes.POINTER(api.llama_token))
        if api.llama_decode(context, api.llama_batch_get_one(pointer, count)) != 0:
            sys.exit("llama_decode failed")

    def prefill(count, salt):
        ids = tokens(count, salt)
        for begin in range(0, count, 512):
            decode(ids, begin, min(512, count - begin))
        api.llama_synchronize(context)

    def measure(kind, number, salt):
        api.llama_memory_clear(memory, True)
        if kind == "prefill":
            start = time.perf_counter()
            prefill(number, salt)
            return number / (time.perf_counter() - start)
        if number > 0:
            prefill(number, salt)
        ids = tokens(arguments.decode, salt)
        start = time.perf_counter()
        for i in range(arguments.decode):
            decode(ids, i, 1)
            api.llama_synchronize(context)
        return arguments.decode / (time.perf_counter() - start)

    results = []
    for kind, number in arguments.tests:
        measure(kind, number, 0)  # warm: pages read, caches filled, clocks up
        rates = [measure(kind, number, 1 + i) for i in range(arguments.repetitions)]
        results.append({"test": kind, "number": number, "tps": statistics.median(rates)})
    print(json.dumps({"results": results, "version": llama_cpp.__version__,
                      "system": api.llama_print_system_info().decode()}))


def run_json(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nfailed: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def edgerunner_command(arguments):
    command = [str(arguments.program), "bench", str(arguments.model), "--json", "--threads",
               str(arguments.threads), "--repetitions", str(arguments.repetitions), "--decode",
               str(arguments.decode)]
    for kind, option in (("prefill", "--prompt"), ("decode", "--depth")):
        numbers = [str(number) for test, number in arguments.tests if test == kind]
        command += [option, ",".join(numbers) or "none"]
    return command


def peer_command(arguments, flash_attention):
    tests = ",".join(f"{kind}:{number}" for kind, number in arguments.tests)
    return [sys.executable, __file__, "--peer-worker", "--model", str(arguments.model),
            "--threads", str(arguments.threads), "--tests", tests, "--decode",
            str(arguments.decode), "--repetitions", str(arguments.repetitions),
            "--flash-attention" if flash_attention else "--no-flash-attention"]


def describe_machine():
    model = platform.processor()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.platform(),
            "python": platform.python_version()}


def commit():
    done = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() or "unknown"


def compare(arguments):
    rates = {"edgerunner": {}, **{peer: {} for peer in PEERS}}
    about = {}
    for round_number in range(arguments.rounds):
        print(f"round {round_number + 1} of {arguments.rounds}", file=sys.stderr)
        ours = run_json(edgerunner_command(arguments))
        about["edgerunner"] = {key: ours[key] for key in ("isa", "kernels") if key in ours}
        for result in ours["results"]:
            number = result["tokens"] if result["test"] == "prefill" else result["depth"]
            rates["edgerunner"].setdefault((result["test"], number), []).append(result["tps"])
        for peer, flash_attention in PEERS.items():
            theirs = run_json(peer_command(arguments, flash_attention))
            about["llama-cpp-python"] = {key: theirs[key] for key in ("version", "system")}
            for result in theirs["results"]:
                rates[peer].setdefault((result["test"], result["number"]), []).append(result["tps"])

    rows = []
    for test in arguments.tests:
        ours = statistics.median(rates["edgerunner"][test])
        medians = {peer: statistics.median(rates[peer][test]) for peer in PEERS}
        best = max(medians, key=medians.get)
        rows.append({"test": test[0], "tokens" if test[0] == "prefill" else "depth": test[1],
                     "edgerunner_tps": ours, "llamacpp_tps": medians[best],
                     "llamacpp_setting": best, "ratio": ours / medians[best],
                     "raw": {name: rates[name][test] for name in rates}})
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "machine": describe_machine(), "model": arguments.model.name,
            "model_bytes": arguments.model.stat().st_size, "threads": arguments.threads,
            "rounds": arguments.rounds, "repetitions": arguments.repetitions,
            "decode_tokens": arguments.decode, "edgerunner_commit": commit(), "about": about,
            "command": " ".join(["bench/compare_llamacpp.py"] + sys.argv[1:]), "results": rows}


def print_table(report):
    print(f"{report['model']}, {report['threads']} threads, {report['machine']['cpu']}, "
          f"medians of {report['rounds']} rounds")
    print(f"{'test':<16}{'EdgeRunner':>12}{'llama.cpp':>12}{'ratio':>8}  llama.cpp's setting")
    for row in report["results"]:
        test = f"{row['test']} {row.get('tokens', row.get('depth'))}"
        print(f"{test:<16}{row['edgerunner_tps']:>12.1f}{row['llamacpp_tps']:>12.1f}"
              f"{row['ratio']:>8.2f}  {row['llamacpp_setting']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/edgerunner")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds")
    parser.add_argument("--repetitions", type=int, default=3, help="of a test within a round")
    parser.add_argument("--decode", type=int, default=64, help="tokens of a decode test")
    parser.add_argument("--tests", type=parse_tests, default=DEFAULT_TESTS,
                        help=f"default {DEFAULT_TESTS}; a decode test names its depth")
    parser.add_argument("--out", type=Path, help="where the raw results go, as JSON")
    parser.add_argument("--peer-worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--flash-attention", action=argparse.BooleanOptionalAction, default=True,
                        help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer_worker:
        peer_worker(arguments)
        return
    report = compare(arguments)
    print_table(report)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
