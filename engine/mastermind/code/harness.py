"""What runs inside a box: tests, candidates, calls and timings of one project, each in a process of its own.

A program of its own that loads nothing of the house: `python harness.py JOB RESULT`. Both files hold JSON;
the job is read before any of the project's code is loaded, and what a process of the project says comes
through a pipe of its own. The project's processes are forked from one that has loaded pytest, so that a
hundred candidates take seconds. Source: mindX spec §6.4 (validation is real commands), steering §3 idea 13.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

_CLOCK = time.perf_counter
_CHUNK = 65_536
_LONGEST_REPLY = 32_000_000
_ITEMS = 20_000
_DEPTH = 12


def encode(value: Any, depth: int = 0) -> Any:
    """A value of the project as JSON that can be compared: its type's name and its parts."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return [kind.__name__, str(value) if kind is int else value]
    if kind is float:
        return ["float", repr(value)]
    if depth >= _DEPTH:
        return ["deep", kind.__name__]
    if kind in (list, tuple):
        return [kind.__name__, [encode(item, depth + 1) for item in value[:_ITEMS]], len(value)]
    if kind in (set, frozenset):
        return [kind.__name__, sorted((encode(item, depth + 1) for item in value), key=repr)]
    if kind is dict:
        return ["dict", [[encode(key, depth + 1), encode(item, depth + 1)] for key, item in value.items()]]
    if hasattr(kind, "__next__"):
        taken = [encode(item, depth + 1) for item, _ in zip(value, range(_ITEMS), strict=False)]
        return ["iterator", taken]
    if "__dict__" in dir(value) and not callable(value):
        return [kind.__qualname__, [[name, encode(item, depth + 1)] for name, item in vars(value).items()]]
    said = repr(value)
    return [kind.__qualname__, said if " at 0x" not in said else ""]


class Pytest:
    """A plugin that notes what became of each test, and which lines it ran."""

    def __init__(self, top: str, lines: bool) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.problems: list[str] = []
        self._top = top.rstrip("/") + "/"
        self._trace = Lines(self._top) if lines else None

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the worst of set-up, call and tear-down."""
        entry = self.tests.setdefault(report.nodeid, {"outcome": "passed", "seconds": 0.0})
        entry["seconds"] += report.duration
        if report.outcome == "skipped" and entry["outcome"] == "passed":
            entry["outcome"] = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        if report.outcome == "failed":
            entry["outcome"] = "failed" if report.when == "call" else "error"
            crash = getattr(report.longrepr, "reprcrash", None)
            if crash is not None:
                entry |= {"path": str(crash.path), "line": crash.lineno, "message": crash.message[:600]}
            else:
                entry["message"] = str(report.longrepr)[:600]

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be loaded is a test that fails."""
        if report.outcome == "failed":
            said = str(report.longrepr).strip()
            self.tests[report.nodeid or "collection"] = {
                "outcome": "error",
                "seconds": 0.0,
                "message": said[-600:],
            }

    def pytest_runtest_call(self, item: Any) -> None:
        """Begin to note lines."""
        if self._trace is not None:
            self._trace.begin()

    def pytest_runtest_teardown(self, item: Any) -> None:
        """End noting lines, and keep them with the test."""
        if self._trace is not None:
            found = self._trace.end()
            self.tests.setdefault(item.nodeid, {"outcome": "passed", "seconds": 0.0})["lines"] = found


class Lines:
    """Notes which lines below a directory are run."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._found: dict[str, set[int]] = {}

    def begin(self) -> None:
        """Start with nothing."""
        self._found = {}
        sys.settrace(self._called)

    def end(self) -> dict[str, list[int]]:
        """Stop; lines by file, relative to the directory."""
        sys.settrace(None)
        return {path[len(self._top) :]: sorted(lines) for path, lines in self._found.items()}

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        if not path.startswith(self._top):
            return None
        lines = self._found.setdefault(path, set())

        def each(frame: Any, event: str, argument: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return each

        lines.add(frame.f_lineno)
        return each


def run_tests(top: str, wanted: list[str], *, lines: bool = False, told: bool = True) -> dict[str, Any]:
    """Run tests in this process, which loads the project.

    Args:
        top: the project's directory.
        wanted: ids of tests or files; all when empty.
        lines: note the lines that each test runs.
        told: say where and how a test failed.
    """
    os.chdir(top)
    if importlib.util.find_spec("pytest") is None:
        return run_unittest(top)
    import pytest

    plugin = Pytest(top, lines)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", top]
    options += ["--tb=short"] if told else ["--tb=no", "-p", "no:unraisableexception"]
    options += ["-o", "addopts=", "-o", "filterwarnings=", *wanted]
    code = int(pytest.main(options, plugins=[plugin]))
    if code in (3, 4):
        plugin.problems.append(f"pytest ended with {code}: " + ("internal error", "usage")[code - 3])
    return {"tests": plugin.tests, "problems": plugin.problems, "ended": True}


def run_unittest(top: str) -> dict[str, Any]:
    """The tests of `unittest`, where there is no pytest."""
    import unittest

    tests: dict[str, dict[str, Any]] = {}

    class Result(unittest.TestResult):
        def startTest(self, test: Any) -> None:  # noqa: N802
            tests[test.id()] = {"outcome": "passed", "seconds": 0.0}

        def addError(self, test: Any, err: Any) -> None:  # noqa: N802
            tests[test.id()] = {"outcome": "error", "seconds": 0.0, "message": repr(err[1])[:600]}

        def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
            tests[test.id()] = {"outcome": "failed", "seconds": 0.0, "message": repr(err[1])[:600]}

        def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
            tests[test.id()]["outcome"] = "skipped"

    start = "tests" if Path("tests").is_dir() else "."
    unittest.defaultTestLoader.discover(start, top_level_dir=top).run(Result())
    note = "pytest is not installed: only tests of unittest were run"
    return {"tests": tests, "problems": [note], "ended": True}


def call(job: dict[str, Any], top: str) -> dict[str, Any]:
    """Call functions with given arguments; what they return or raise, and what became of the arguments."""
    sys.path[:0] = [f"{top}/{path}" for path in job["imports"]]
    answers: list[Any] = []
    for one in job["calls"]:
        signal.setitimer(signal.ITIMER_REAL, job["call_s"])
        try:
            function: Any = importlib.import_module(one["module"])
            for name in one["function"].split("."):
                function = getattr(function, name)
            arguments = ast.literal_eval(one["arguments"])
            said = encode(function(*arguments))
            answers.append(["returned", said, encode(arguments)])
        except (Exception, SystemExit) as error:  # noqa: BLE001
            answers.append(["raised", type(error).__name__])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return {"answers": answers, "ended": True}


def _late(*_: Any) -> None:
    raise TimeoutError


def _set_up(top: str, bench: dict[str, Any], imports: list[str]) -> Any:
    """A benchmark of a size, ready to be called."""
    sys.path[:0] = [f"{top}/{path}" for path in (*imports, str(Path(bench["file"]).parent))]
    module = importlib.import_module(Path(bench["file"]).stem)
    made = getattr(module, bench["name"])(bench["size"])
    return made if callable(made) else lambda: made


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


class Child:
    """A forked process that does one piece of work and says what came of it through a pipe."""

    def __init__(self, work: Any, *, group: bool = True) -> None:
        self.out, tell = os.pipe()
        hear, self.go = os.pipe()
        self.said = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.out)
            os.close(self.go)
            if group:
                os.setpgid(0, 0)
            _silence()
            try:
                signal.signal(signal.SIGALRM, _late)
                reply = work(tell, hear)
                data = json.dumps(reply).encode()
            except BaseException as error:  # noqa: BLE001
                data = json.dumps({"problems": [f"{type(error).__name__}: {error}"[:600]]}).encode()
            while data:
                data = data[os.write(tell, data) :]
            os._exit(0)
        os.close(tell)
        os.close(hear)

    def take(self, until: float) -> bool:
        """Read more; False at its end. A process that is late is killed.

        Args:
            until: moment by the clock at which it is late.
        """
        left = until - _CLOCK()
        ready = left > 0 and select.select([self.out], [], [], left)[0]
        piece = os.read(self.out, _CHUNK) if ready else b""
        self.said += piece
        return bool(piece) and len(self.said) < _LONGEST_REPLY

    def end(self, late: bool = False) -> dict[str, Any]:
        """Kill what is left of it, and read its reply."""
        for kill in (os.killpg, os.kill):
            try:
                kill(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        os.close(self.out)
        os.close(self.go)
        _, status = os.waitpid(self.pid, 0)
        try:
            reply = json.loads(self.said)
            if isinstance(reply, dict):
                return reply
        except ValueError:
            pass
        why = "it took too long" if late else f"it ended without a word (status {status})"
        return {"problems": [why]}


def whole(work: Any, limit_s: float, *, group: bool = True) -> dict[str, Any]:
    """Do one piece of work in a process of its own, to its end; `group`: with a process group of its own."""
    child = Child(lambda tell, hear: work(), group=group)
    until = _CLOCK() + limit_s
    while child.take(until):
        pass
    return child.end(late=_CLOCK() >= until)


def candidates(job: dict[str, Any]) -> dict[str, Any]:
    """Try changes one after the other, several at once, each on a tree of its own.

    A change that does not make a test of `first` pass is given up there; the others run all tests.
    """
    slots: list[str] = job["slots"]
    free, running = list(slots), dict[Child, tuple[int, str, float]]()
    results: list[Any] = [None] * len(job["changes"])
    waiting = list(enumerate(job["changes"]))[::-1]
    stop_at = _CLOCK() + job["limit_s"]
    while (waiting and _CLOCK() < stop_at) or running:
        while waiting and free and _CLOCK() < stop_at:
            number, change = waiting.pop()
            top = free.pop()
            _write(top, change)
            work = _trial(job, f"{top}/{job['project']}")
            running[Child(work)] = (number, top, _CLOCK() + job["each_s"])
        now = _CLOCK()
        next_late = min(until for _, _, until in running.values())
        ready = select.select([child.out for child in running], [], [], max(0.0, next_late - now))[0]
        for child in list(running):
            number, top, until = running[child]
            if (child.out in ready and not child.take(until)) or _CLOCK() >= until:
                results[number] = child.end(late=_CLOCK() >= until)
                del running[child]
                _write(top, {path: job["original"].get(path) for path in job["changes"][number]})
                free.append(top)
    return {"results": results, "ended": True}


def _trial(job: dict[str, Any], top: str) -> Any:
    def work(tell: int, hear: int) -> dict[str, Any]:
        """The tests that should be mended first, in a process within this one; then all of them."""
        if job["first"]:
            mended = whole(lambda: run_tests(top, job["first"], told=False), job["each_s"], group=False)
            states = [mended.get("tests", {}).get(test, {}).get("outcome") for test in job["first"]]
            if "passed" not in states:
                return {"tests": mended.get("tests", {}), "given_up": True}
        return run_tests(top, job["tests"], told=False)

    return work


def _write(top: str, files: dict[str, str | None]) -> None:
    for path, text in files.items():
        target = Path(top, path)
        if text is None:
            target.unlink(missing_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode("utf-8", "surrogateescape"))


def timings(job: dict[str, Any], top: str) -> dict[str, Any]:
    """Time benchmarks by the processor clock of their process, which this one reads."""
    found = []
    until = _CLOCK() + job["limit_s"]
    for bench in job["benches"]:
        if _CLOCK() >= until:
            found.append({"problems": ["no time was left"]})
            continue
        found.append(_timed(bench, job, top, min(until, _CLOCK() + job["each_s"])))
    return {"timings": found, "ended": True}


def _timed(bench: dict[str, Any], job: dict[str, Any], top: str, until: float) -> dict[str, Any]:
    def work(tell: int, hear: int) -> dict[str, Any]:
        ready = _set_up(top, bench, job["imports"])
        os.write(tell, b"r")
        result = None
        while os.read(hear, 1) == b"g":
            result = ready()
            os.write(tell, b"d")
        return {"result": encode(result)}

    child, seconds = Child(work), list[float]()
    if child.take(until) and child.said == b"r":
        spent = 0.0
        while len(seconds) < job["repeats"] and (len(seconds) < 3 or spent < job["enough_s"]):
            child.said = b""
            begin = _processor(child.pid)
            os.write(child.go, b"g")
            if not child.take(until) or child.said != b"d":
                break
            seconds.append(_processor(child.pid) - begin)
            spent += seconds[-1]
        child.said = b""
        with contextlib.suppress(OSError):
            os.write(child.go, b"e")
        while child.take(until):
            pass
    reply = child.end(late=_CLOCK() >= until)
    return {"seconds": seconds, "result": reply.get("result"), "problems": reply.get("problems", [])}


def _processor(pid: int) -> float:
    """Processor seconds of a process, read from outside it; the wall clock where the kernel does not say."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except (OSError, AttributeError):
        return _CLOCK()


def _warm(empty: str) -> None:
    """Load pytest with its plugins once, before anything is forked; there is no code of the project in it."""
    import pytest

    kept = [os.dup(stream) for stream in (1, 2)]
    _silence()
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", empty, empty])
    for stream, copy in zip((1, 2), kept, strict=True):
        os.dup2(copy, stream)
        os.close(copy)
    gc.freeze()


def main(job_path: str, result_path: str) -> int:
    """Do what the job says; its mode is `tests`, `candidates`, `calls` or `timings`."""
    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    top = f"{job['top']}/{job['project']}"
    sys.dont_write_bytecode = True
    if job["mode"] in ("tests", "candidates") and importlib.util.find_spec("pytest") is not None:
        _warm(job["empty"])
    match job["mode"]:
        case "tests":
            lines = bool(job.get("lines"))
            result = whole(lambda: run_tests(top, job["tests"], lines=lines), job["limit_s"])
        case "candidates":
            result = candidates(job)
        case "calls":
            result = whole(lambda: call(job, top), job["limit_s"])
        case _:
            result = timings(job, top)
    Path(result_path).unlink(missing_ok=True)
    Path(result_path).write_text(json.dumps(result), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
