"""The conformance cases run by Jason itself: says what differs, or fills in what Jason prints.

    JASON=folder python -m tests.benchmarks.jason_conformance [--fill] [FILE …]

The folder holds Jason's classes or its jar. Cases of one agent run together in one process, an agent each;
cases of several agents run alone. What an agent prints is what counts, not warnings.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.engine.bdi.conformance.cases import Case, case_files, read_cases

LIBRARIES = "/usr/share/java/javax.json.jar"
LOGGING = """handlers=java.util.logging.ConsoleHandler
.level=INFO
java.util.logging.ConsoleHandler.level=INFO
java.util.logging.ConsoleHandler.formatter=java.util.logging.SimpleFormatter
java.util.logging.SimpleFormatter.format=%4$s|%3$s|%5$s%n
"""
STOPPER = "!stop. +!stop <- .wait({wait}); .stopMAS."
TOGETHER = 25
"""Agents of one process."""


def classpath(folder: Path) -> str:
    """Where Java finds Jason's classes."""
    return ":".join([LIBRARIES, str(folder), *map(str, folder.glob("*.jar"))])


def run_jason(agents: dict[str, str], wait: int, folder: Path) -> dict[str, list[str]]:
    """What each agent prints."""
    place = Path(tempfile.mkdtemp(prefix="jason"))
    try:
        for name, text in {**agents, "stopper": STOPPER.format(wait=wait)}.items():
            (place / f"{name}.asl").write_text(text + "\n", "utf-8")
        named = " ".join(f"{name};" for name in agents)
        (place / "t.mas2j").write_text(f"MAS t {{ agents: {named} stopper; }}")
        (place / "logging.properties").write_text(LOGGING)
        java = ["java", "-Djava.awt.headless=true", "-cp", classpath(folder), "jason.infra.local.RunLocalMAS"]
        done = subprocess.run(
            [*java, "t.mas2j", "--log-conf", "logging.properties", "--no-net"],
            cwd=place,
            capture_output=True,
            text=True,
            timeout=60 + wait / 1000,
            check=False,
        )
    finally:
        shutil.rmtree(place)
    printed: dict[str, list[str]] = {name: [] for name in agents}
    for line in (done.stdout + done.stderr).split("\n"):
        match = re.fullmatch(r"([A-Z]+)\|[\w.]*\.(\w+)\|(.*)", line)
        if match is not None and match[2] in printed:
            if match[1] == "INFO":
                printed[match[2]].append(match[3])
            elif os.environ.get("VERBOSE"):
                print(line[:300], file=sys.stderr)
        elif line and os.environ.get("VERBOSE"):
            print("   ", line[:300], file=sys.stderr)
    return printed


def results(cases: Iterable[Case], folder: Path) -> list[tuple[Case, list[str]]]:
    """Each case with what Jason prints."""
    together = [case for case in cases if not (case.agents or case.alone)]
    alone = [case for case in cases if case.agents or case.alone]
    groups = [together[start : start + TOGETHER] for start in range(0, len(together), TOGETHER)]
    with ThreadPoolExecutor(2) as pool:
        found = [pair for pairs in pool.map(lambda group: _group(group, folder), groups) for pair in pairs]
        # An agent that cannot be read ends the others of its process.
        alone += [case for case, lines in found if not lines]
        return [pair for pair in found if pair[1]] + list(pool.map(lambda case: _single(case, folder), alone))


def _group(cases: list[Case], folder: Path) -> list[tuple[Case, list[str]]]:
    agents = {f"c{number}": case.text for number, case in enumerate(cases)}
    printed = run_jason(agents, max(case.wait for case in cases), folder)
    return [(case, printed[f"c{number}"]) for number, case in enumerate(cases)]


def _single(case: Case, folder: Path) -> tuple[Case, list[str]]:
    printed = run_jason({"ag": case.text, **case.agents}, case.wait, folder)
    if not case.agents:
        return case, printed["ag"]
    return case, [f"{name}: {line}" for name in sorted(printed) for line in printed[name]]


def fill(path: Path, printed: dict[str, list[str]]) -> None:
    """Write what Jason prints behind each case."""
    blocks = re.split(r"(?m)^(?=\[\[case\]\]$)", path.read_text("utf-8"))
    made = [blocks[0]]
    for block in blocks[1:]:
        name = re.search(r'(?m)^name = "(.*)"$', block)
        assert name is not None
        if name[1] in printed:
            block = re.sub(r"(?m)^prints = .*\n", "", block).rstrip("\n")
            block += f"\nprints = {json.dumps(printed[name[1]], ensure_ascii=False)}\n\n"
        made.append(block)
    path.write_text("".join(made).rstrip("\n") + "\n", "utf-8")


def main() -> int:
    """Compare, or fill in; 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--fill", action="store_true", help="write what Jason prints into the files")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args()
    folder = Path(os.environ.get("JASON", ""))
    if not os.environ.get("JASON") or not folder.is_dir():
        print("set JASON to the folder with Jason's classes", file=sys.stderr)
        return 2
    wrong = count = 0
    for path in options.files or case_files():
        cases = [case for case in read_cases(path) if options.only in case.name]
        printed = {}
        for case, lines in results(cases, folder):
            printed[case.name] = lines
            count += 1
            if lines != case.prints:
                wrong += 1
                if not options.fill:
                    print(f"{path.stem}: {case.name}\n  here  {case.prints}\n  Jason {lines}")
        if options.fill:
            fill(path, printed)
    print(f"{count} cases, {wrong} {'changed' if options.fill else 'differ'}")
    return int(bool(wrong) and not options.fill)


if __name__ == "__main__":
    sys.exit(main())
