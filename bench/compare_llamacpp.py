#!/usr/bin/env python3
"""Measures EdgeRunner and llama.cpp alternately on the same GGUF files and prints the ratios.

    python3 -m venv venv && venv/bin/pip install llama-cpp-python
    venv/bin/python bench/compare_llamacpp.py --model MODEL.gguf
    venv/bin/python bench/compare_llamacpp.py --grid FOLDER --out bench/results/NAME.json
    bench/plot_grid.py bench/results/NAME.json docs/NAME.svg

Each round runs, one process after another, `edgerunner bench` and llama.cpp through
llama-cpp-python's low-level API (llama_decode; n_batch = n_ubatch = 512, f16 cache). A machine's
speed drifts over minutes, so only medians over alternating rounds are compared. llama.cpp runs with
flash attention on and off, and the faster one counts for each test; with --peer on, only with it.

A virtual machine's cores are moved between caches, and memory with them reads half as fast again or
less. Before and after every program a short bench tells how long a thread takes to see what another
wrote; where that was not the same throughout, ratios are also given for the runs of either place.

--grid measures a model in many formats: FOLDER/NAME-FORMAT.gguf for every format of GRID. Files that
are missing are made from FOLDER/NAME-F16.gguf by llama.cpp's quantiser, which takes seconds each.
Some 3 minutes a round on 2 cores.
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

# What --grid measures: name, formats, tests; of the large model what two cores finish in a minute.
GRID = (
    ("smollm2", ("F16", "BF16", "Q8_0", "Q4_0", "Q4_K_M", "Q6_K"), DEFAULT_TESTS),
    ("llama32-1b", ("Q8_0", "Q4_K"), "prefill:512,decode:0"),
)
# llama.cpp's llama_ftype of a format, and whether every matrix gets that type ("pure").
FILE_TYPES = {"F16": (1, False), "BF16": (32, False), "Q8_0": (7, False), "Q4_0": (2, False),
              "Q4_K": (14, True), "Q4_K_M": (15, False), "Q6_K": (18, False)}
# Handovers are of the same place where they differ by less; a cache in common makes three to five.
ALIKE = 1.7
# Nanoseconds; longer takes only a thread that shared its core with the other.
PLAUSIBLE = 1000
# Tokens that warm a test up: pages of the file read, clocks up. A whole long prompt adds nothing.
WARM_TOKENS = 128


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
        if salt == 0:
            number = min(number, WARM_TOKENS)
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
        measure(kind, number, 0)  # warms up
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


def handover(arguments):
    """Nanoseconds until a thread sees what another wrote, just now; 0 for a single thread."""
    command = [str(arguments.program), "bench", str(arguments.model), "--json", "--threads",
               str(arguments.threads), "--prompt", "1", "--depth", "none", "--repetitions", "1"]
    return min(run_json(command)["results"][0]["handover_seconds"]) * 1e9


def measure_round(arguments, rates, about):
    """Every program once on arguments.model; adds to rates[program][test] the tokens a second and
    the handovers before and after."""
    def add(program, test, tps, before, after):
        rates[program].setdefault(test, []).append((tps, before, after))

    before = handover(arguments)
    ours = run_json(edgerunner_command(arguments))
    after = handover(arguments)
    about["edgerunner"] = {key: ours[key] for key in ("isa", "kernels") if key in ours}
    for result in ours["results"]:
        number = result["tokens"] if result["test"] == "prefill" else result["depth"]
        add("edgerunner", (result["test"], number), result["tps"], before, after)
    for peer in peers(arguments):
        before = after
        theirs = run_json(peer_command(arguments, PEERS[peer]))
        after = handover(arguments)
        about["llama-cpp-python"] = {key: theirs[key] for key in ("version", "system")}
        for result in theirs["results"]:
            add(peer, (result["test"], result["number"]), result["tps"], before, after)


def peers(arguments):
    return [peer for peer, on in PEERS.items() if on or arguments.peer == "both"]


def ratio(arguments, runs):
    """Of medians; None where a program has no runs. runs[program]: [(tps, before, after)]."""
    medians = {name: statistics.median(tps for tps, _, _ in runs[name])
               for name in runs if runs[name]}
    rivals = [peer for peer in peers(arguments) if peer in medians]
    if "edgerunner" not in medians or not rivals:
        return None
    best = max(rivals, key=medians.get)
    return {"edgerunner_tps": medians["edgerunner"], "llamacpp_tps": medians[best],
            "llamacpp_setting": best, "ratio": medians["edgerunner"] / medians[best]}


def by_place(arguments, runs):
    """The ratio among the runs of either place that the cores were in, as handovers tell."""
    handovers = [ns for name in runs for _, before, after in runs[name] for ns in (before, after)
                 if 0 < ns < PLAUSIBLE]
    if not handovers or max(handovers) < ALIKE * min(handovers):
        return []
    middle = (min(handovers) * max(handovers)) ** 0.5
    places = []
    for place in (lambda ns: 0 < ns < middle, lambda ns: middle <= ns < PLAUSIBLE):
        there = {name: [run for run in runs[name] if place(run[1]) and place(run[2])]
                 for name in runs}
        row = ratio(arguments, there)
        if row:
            ns = statistics.median(run[1] for name in there for run in there[name])
            places.append({"handover_ns": round(ns),
                           "runs": {name: len(there[name]) for name in there}, **row})
    return places


def ratios(arguments, rates):
    rows = []
    for test in arguments.tests:
        runs = {name: rates[name][test] for name in rates}
        rows.append({"test": test[0], "tokens" if test[0] == "prefill" else "depth": test[1],
                     **ratio(arguments, runs), "places": by_place(arguments, runs),
                     "raw": {name: [tps for tps, _, _ in runs[name]] for name in runs},
                     "handovers_ns": {name: [(round(before), round(after))
                                             for _, before, after in runs[name]] for name in runs}})
    return rows


def case(arguments, model, tests):
    """A copy of the arguments for one file of several."""
    return argparse.Namespace(**{**vars(arguments), "model": model, "tests": tests})


def make_file(source, target, file_type):
    """Quantises source with llama.cpp."""
    import ctypes

    import llama_cpp as api

    if not source.exists():
        sys.exit(f"{target} is missing, and {source}, which it could be made from, is too")
    print(f"making {target.name}", file=sys.stderr)
    quiet = api.llama_log_callback(lambda level, text, data: None)
    api.llama_log_set(quiet, None)
    params = api.llama_model_quantize_default_params()
    params.ftype, params.pure = FILE_TYPES[file_type]
    params.nthread = os.cpu_count() or 1
    part = target.with_suffix(".part")
    if api.llama_model_quantize(str(source).encode(), str(part).encode(),
                                ctypes.byref(params)) != 0:
        sys.exit(f"llama.cpp could not make {target} from {source}")
    part.rename(target)


def grid_cases(arguments):
    cases = []
    for name, formats, tests in GRID:
        for file_type in formats:
            if arguments.only and f"{name}-{file_type}" not in arguments.only.split(","):
                continue
            model = arguments.grid / f"{name}-{file_type}.gguf"
            if not model.exists():
                make_file(arguments.grid / f"{name}-F16.gguf", model, file_type)
            cases.append(case(arguments, model, arguments.tests or parse_tests(tests)))
    if not cases:
        sys.exit(f"--only {arguments.only} names nothing of the grid")
    return cases


def compare(arguments):
    """Rounds over all files, so that a drift of the machine meets them alike."""
    if arguments.grid:
        cases = grid_cases(arguments)
    else:
        cases = [case(arguments, arguments.model, arguments.tests or parse_tests(DEFAULT_TESTS))]
    start = time.monotonic()
    rates = [{"edgerunner": {}, **{peer: {} for peer in peers(arguments)}} for _ in cases]
    about = [{} for _ in cases]
    for round_number in range(arguments.rounds):
        for i, one in enumerate(cases):
            print(f"round {round_number + 1} of {arguments.rounds}: {one.model.name} "
                  f"({time.monotonic() - start:.0f} s)", file=sys.stderr)
            measure_round(one, rates[i], about[i])
    models = [{"model": one.model.name, "model_bytes": one.model.stat().st_size,
               "about": about[i], "results": ratios(one, rates[i])} for i, one in enumerate(cases)]
    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "machine": describe_machine(), "threads": arguments.threads,
              "rounds": arguments.rounds, "repetitions": arguments.repetitions,
              "decode_tokens": arguments.decode, "edgerunner_commit": commit(),
              "seconds": round(time.monotonic() - start)}
    return {**report, "models": models} if arguments.grid else {**report, **models[0]}


def print_table(report):
    print(f"{report['threads']} threads, {report['machine']['cpu']}, "
          f"medians of {report['rounds']} rounds")
    for model in report.get("models", [report]):
        print(f"\n{model['model']}")
        print(f"{'test':<16}{'EdgeRunner':>12}{'llama.cpp':>12}{'ratio':>8}  llama.cpp's setting")
        for row in model["results"]:
            test = f"{row['test']} {row.get('tokens', row.get('depth'))}"
            print(f"{test:<16}{row['edgerunner_tps']:>12.1f}{row['llamacpp_tps']:>12.1f}"
                  f"{row['ratio']:>8.2f}  {row['llamacpp_setting']}")
            for place in row["places"]:
                runs = " and ".join(str(count) for count in place["runs"].values())
                print(f"{'  at ' + str(place['handover_ns']) + ' ns':<16}"
                      f"{place['edgerunner_tps']:>12.1f}{place['llamacpp_tps']:>12.1f}"
                      f"{place['ratio']:>8.2f}  of {runs} runs")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", type=Path, help="a GGUF file")
    what.add_argument("--grid", type=Path, help="a folder with NAME-FORMAT.gguf; see above")
    parser.add_argument("--only", help="of the grid, as smollm2-Q8_0,llama32-1b-Q4_K")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/edgerunner")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, help="alternating rounds; default 5, 3 of a grid")
    parser.add_argument("--repetitions", type=int, help="within a round; default 3, 1 of a grid")
    parser.add_argument("--decode", type=int, help="tokens of a decode test; default 64, 32 of a grid")
    parser.add_argument("--peer", choices=("both", "on"),
                        help="llama.cpp's flash attention; default both, on of a grid")
    parser.add_argument("--tests", type=parse_tests,
                        help=f"default {DEFAULT_TESTS}; a decode test names its depth")
    parser.add_argument("--out", type=Path, help="where the raw results go, as JSON")
    parser.add_argument("--peer-worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--flash-attention", action=argparse.BooleanOptionalAction, default=True,
                        help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for name, alone, in_grid in (("rounds", 5, 3), ("repetitions", 3, 1), ("decode", 64, 32),
                                 ("peer", "both", "on")):
        if getattr(arguments, name) is None:
            setattr(arguments, name, in_grid if arguments.grid else alone)
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
