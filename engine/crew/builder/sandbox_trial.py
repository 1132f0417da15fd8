"""What runs in the sandbox to try an agent's folder: it imports the code, runs the tests, then a mutant's.

It is handed to a bare interpreter as a file and imports nothing of the engine before it knows where that
is. Each run of pytest is a fork of a process that has loaded everything, so that the second one costs little.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LINES, _LETTERS = 100, 20_000


class Counter:
    """A plugin of pytest that counts the results of the tests."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count a test by its call, or by its set-up where that did not get so far."""
        if report.failed:
            self.failed += 1
        elif report.skipped:
            self.skipped += 1
        elif report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: Any) -> None:
        """Count a file that cannot be collected as failed."""
        self.failed += bool(report.failed)


def open_engine(place: str, packages: list[str]) -> None:
    """Make the engine importable from its directory alone: nothing beside it can be read here."""
    sys.path.extend(packages)
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location(
        "engine", f"{place}/__init__.py", submodule_search_locations=[place]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["engine"] = module
    spec.loader.exec_module(module)


def imported(folder: str) -> dict[str, Any]:
    """Whether the code of a folder can be imported."""
    importlib.import_module("engine.crew.builder.agent_base").load_agent(Path(folder))
    tools = Path(folder, "tools.py")
    if tools.exists():
        exec(compile(tools.read_bytes(), str(tools), "exec"), {"__name__": "tools"})
    return {"ok": True}


def tested(folder: str) -> dict[str, Any]:
    """What pytest says of a folder."""
    os.chdir(folder)
    counter = Counter()
    options = ["-q", "-x", "--tb=short", "-p", "no:cacheprovider", "-c", os.devnull]
    options += ["--rootdir", folder, "--confcutdir", folder]
    code = importlib.import_module("pytest").main(
        [*options, "--import-mode=importlib", folder + "/tests"], plugins=[counter]
    )
    counts = {"passed": counter.passed, "failed": counter.failed, "skipped": counter.skipped}
    return {"ok": True, "code": int(code), **counts}


def forked(work: Callable[[str], dict[str, Any]], folder: str, log: str) -> dict[str, Any]:
    """What work in a child says; its output goes to a file, of which the end comes with the answer."""
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(mine)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        try:
            result = work(folder)
        except BaseException:  # noqa: BLE001 - whatever foreign code raises, exits included, is the answer
            traceback.print_exc()
            result = {"ok": False}
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(theirs, json.dumps(result).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(mine, "rb") as answer:
        answer_bytes = answer.read()
    _, status = os.waitpid(child, 0)
    try:
        result = json.loads(answer_bytes)
    except ValueError:
        result = {"ok": False, "ended": os.waitstatus_to_exitcode(status)}
    lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES:]
    return {**result, "output": "\n".join(lines)[-_LETTERS:]}


def main(job: dict[str, Any]) -> None:
    """Do all of it and print one line of JSON."""
    open_engine(job["engine"], job["packages"])
    importlib.import_module("pytest")  # each fork has it then
    answer = {"imported": forked(imported, job["folder"], job["log"])}
    if answer["imported"]["ok"]:
        answer["tests"] = forked(tested, job["folder"], job["log"])
        if job["mutant"] and answer["tests"].get("code") == 0:
            answer["mutant"] = forked(tested, job["mutant"], job["log"])
    print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
