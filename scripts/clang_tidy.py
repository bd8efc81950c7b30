#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build, several of a folder as one translation unit.

    scripts/clang_tidy.py build/release

Most of clang-tidy's time goes into the headers that sources share: 27 sources of src/runtime take it
two thirds of the time together that they take eight by eight. Those that don't compile together, as
where names of two meet, are checked apart. Where it finds anything, be it only of standing together,
each half is checked by itself, down to single sources. Prints what was found; the exit status is 1
where there is anything.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

TOGETHER = 40
# Without the static analyser, which doubles the time (CONTRIBUTING.md says how to run it), and
# without the check that refuses to include a source. The compiler's warning options are GCC's.
OPTIONS = ["-quiet", "-checks=-clang-analyzer-*,-bugprone-suspicious-include",
           "-extra-arg=-Wno-unknown-warning-option"]


def arguments_of(entry):
    """A compile command less the compiler, the output and the source."""
    arguments = shlex.split(entry["command"])[1:]
    kept, skip = [], False
    for argument in arguments:
        if skip or argument in ("-o", "-c", entry["file"]):
            skip = argument == "-o"
            continue
        kept.append(argument)
    return tuple(kept)


def sources_of(entry):
    """The sources that a compile command is for: several where CMAKE_UNITY_BUILD is on."""
    file = pathlib.Path(entry["file"])
    if file.name.startswith("unity_"):
        return [pathlib.Path(name) for name in re.findall('#include "(.+)"', file.read_text())]
    return [file]


def groups_of(build, root):
    """Sources of one folder that are compiled alike, at most TOGETHER at a time."""
    alike = collections.defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        for source in sources_of(entry):
            if source.suffix == ".cc" and source.is_relative_to(root / "src"):
                alike[source.parent, arguments_of(entry)].append(source)
    for (_, arguments), sources in sorted(alike.items()):
        sources = sorted(set(sources))
        for first in range(0, len(sources), TOGETHER):
            yield arguments, sources[first:first + TOGETHER]


def tidy(root, file, arguments):
    command = ["clang-tidy", f"--config-file={root / '.clang-tidy'}", *OPTIONS, str(file), "--",
               *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


def unfit(file, arguments, sources):
    """Which of the sources that a file includes don't compile in it, as the compiler soon tells."""
    command = ["clang++", "-fsyntax-only", "-ferror-limit=0", "-Wno-unknown-warning-option",
               *arguments, str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    named = set(re.findall(r"(?m)^(/.+?):\d+:\d+: (?:fatal )?error:", run.stderr))
    return [source for source in sources if str(source) in named]


def check(root, folder, arguments, sources):
    """The findings in some sources: "" where there are none."""
    file = sources[0]
    if len(sources) > 1:
        file = folder / str(sources[0].relative_to(root)).replace("/", "_")
        file.write_text("".join(f'#include "{source}"\n' for source in sources))
        apart = unfit(file, arguments, sources)
        if 0 < len(apart) < len(sources):
            rest = [source for source in sources if source not in apart]
            return check(root, folder, arguments, rest) + check(root, folder, arguments, apart)
    status, output = tidy(root, file, arguments)
    if status == 0 or len(sources) == 1:
        return output if status != 0 else ""
    # A true finding, or one of standing together: the halves tell.
    half = len(sources) // 2
    return (check(root, folder, arguments, sources[:half]) +
            check(root, folder, arguments, sources[half:]))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    root = pathlib.Path(__file__).resolve().parent.parent
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        checks = [pool.submit(check, root, folder, arguments, sources)
                  for arguments, sources in groups_of(build, root)]
    # A header's finding comes with each source that includes it.
    findings = {}
    for done in checks:
        for finding in re.split(r"(?m)^(?=/\S+:\d+:\d+: (?:error|warning):)", done.result()):
            if finding.strip():
                findings[finding] = None
    print("".join(findings), end="")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
