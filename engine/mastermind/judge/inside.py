"""The program in the box: it forks for each question, and the fork alone runs candidate code.

Stand-alone, started by `engine.mastermind.judge.box` in a jail, with nothing but the standard library. The
parent here never imports the candidate. It holds the pipe to the judge, reads the processor clock of the
fork from outside, ends what a fork leaves behind and clears the room before the next. The fork shuts the pipe
to the judge before it imports anything of the candidate's and speaks to the parent only.

What in-process code can still do: find this program's objects in its own fork and say something else than
what was so. It has then to know the right answer, for answers are compared where it cannot look; has to let
checks fail that must fail, which look like the others; and has to take as little time as it says, for the
kernel says so, too. What it reaches for is told by an audit hook, which no ordinary means take away; what the
hook misses the jail holds back. Where a project's own tests are all there is to go by, code that was written
to tell canaries from tests, by what they assert, can still get past them; sealed calls answer that.
"""

from __future__ import annotations

import contextlib
import gc
import json
import marshal
import os
import select
import shutil
import signal
import struct
import sys
import time
import types
from collections.abc import Callable
from typing import Any

MOST_BYTES = 8 << 20
"""What one fork may say."""
_SUBREAPER, _DUMPABLE = 36, 4
_CLOCKS = tuple(
    name
    for name in dir(time)
    if name.startswith(("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime"))
    or name == "sleep"
)
_CLOCK = {name: getattr(time, name) for name in _CLOCKS if callable(getattr(time, name))}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    **dict.fromkeys(("os.remove", "os.rmdir", "os.truncate", "os.mkdir", "os.chmod", "os.chown"), (0,)),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink", "shutil.move"), (0, 1)),
    "shutil.rmtree": (0,),
    "os.utime": (0,),
}
"""Events that change what stands at a path, and which of their arguments are paths."""
_ITERATORS = (types.GeneratorType, map, filter, zip, range, enumerate, reversed)
_LONGEST = 200_000


def plain(value: Any) -> Any:
    """An iterator's items as a list, so that lazy work is done where it counts; anything else as it is."""
    if type(value) in _ITERATORS:
        return {"iterator": [item for item, _ in zip(value, range(_LONGEST), strict=False)]}
    return value


def encode(value: Any, depth: int = 0) -> Any:
    """A value as JSON that says its type; an object of a class is its class's name and what it prints."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if abs(value) < float("inf") else {"float": repr(value)}
    if depth > 50:
        return {"object": kind.__name__}
    if kind is list:
        return [encode(item, depth + 1) for item in value]
    if kind is tuple:
        return {"tuple": [encode(item, depth + 1) for item in value]}
    if kind in (set, frozenset):
        return {kind.__name__: sorted((encode(item, depth + 1) for item in value), key=repr)}
    if kind is dict:
        return {"dict": [[encode(key, depth + 1), encode(item, depth + 1)] for key, item in value.items()]}
    if kind in _ITERATORS:
        return {"object": kind.__name__}
    words, cut = repr(value)[:2000], ""
    for part in words.split(" at 0x"):
        cut += part.lstrip("0123456789abcdef") if cut else part
    return {"object": kind.__name__, "repr": cut}


def prctl(option: int, value: int) -> None:
    """Set a property of this process, where that can be done."""
    with contextlib.suppress(Exception):  # the layers around hold without it
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class Fork:
    """The side of a question that runs candidate code; nothing of it returns."""

    def __init__(self, config: dict[str, Any], ask: dict[str, Any], say: int, go: int) -> None:
        self.config, self.ask = config, ask
        self._say, self._go, self._nonce = say, go, ask["nonce"]
        self._told: set[tuple[str, str]] = set()
        self._steps = 0
        self._write, self._read, self._dump = os.write, os.read, json.dumps
        self._real, self._parent = os.path.realpath, os.getppid()

    def tell(self, kind: str, data: Any = None) -> None:
        """One line to the parent."""
        line = f"{self._nonce} {kind} {self._dump(data)}\n".encode()
        while line:
            line = line[self._write(self._say, line) :]

    def pause(self, kind: str, data: Any = None) -> None:
        """Say that a stage is over and wait until the parent has read the clock."""
        self.tell(kind, data)
        self._read(self._go, 1)

    def run(self) -> None:
        """Answer the question and end."""
        import random

        random.seed(self.ask["seed"])
        for name in self.config["imports"]:
            sys.path.insert(0, os.path.normpath(os.path.join(self.config["tree"], name)))  # noqa: PTH118
        os.chdir(self.config["tree"])
        sys.addaudithook(self._hook)
        test = self.ask["test"]
        counted = self.ask["steps"]
        if counted:
            sys.settrace(self._trace)
        said = self._tested(test) if test else self._called()
        if counted:
            kept = sys.gettrace()
            sys.settrace(None)
            said["traced"] = kept == self._trace
        said["clocks"] = [name for name, one in _CLOCK.items() if getattr(time, name, None) is not one]
        self.pause("end", said)
        os._exit(0)

    def _trace(self, _frame: Any, event: str, _argument: Any) -> Any:
        if event == "line":
            self._steps += 1
        return self._trace

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = (*arguments, None, None)[:3]
            wrote = bool((flags or 0) & _WRITING) or (isinstance(mode, str) and bool(set(mode) & set("wax+")))
            self._touched("write" if wrote else "read", path)
        elif event in _CHANGES:
            for place in _CHANGES[event]:
                self._touched("remove" if event in ("os.remove", "os.rmdir", "shutil.rmtree") else "change",
                              arguments[place])  # fmt: skip
        elif event in ("os.listdir", "os.scandir"):
            self._touched("list", arguments[0])
        elif event in ("resource.setrlimit", "resource.prlimit") or (
            event == "os.kill" and arguments[0] in (self._parent, -1, 1)
        ):
            self._note(event, "")
        elif event in ("sys.settrace", "sys.setprofile") and self.ask["steps"] and self._steps:
            self._note("sys.settrace", "")

    def _touched(self, how: str, path: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        name = os.fsdecode(path)
        real = self._real(name)
        free = self.config["free_to_write"] if how not in ("read", "list") else self.config["free_to_read"]
        if not any(real == one or real.startswith(one + "/") for one in free):
            self._note(how, real)

    def _note(self, event: str, path: str) -> None:
        if (event, path) not in self._told and len(self._told) < 200:
            self._told.add((event, path))
            self.tell("touched", [event, path[:500]])

    def _called(self) -> dict[str, Any]:
        import importlib

        found: list[Any] = []
        for target, _, _ in self.ask["calls"]:
            module, _, name = target.partition(":")
            try:
                value: Any = importlib.import_module(module)
                for part in name.split("."):
                    value = getattr(value, part)
            except BaseException as error:  # noqa: BLE001 - whatever candidate code raises is its answer
                value = error
            found.append(value)
        self.pause("ready", self._steps)
        results: list[Any] = []
        keep = not self.ask["measured"]
        for function, (_, args, kwargs) in zip(found, self.ask["calls"], strict=True):
            results.append(_answer(function, args, kwargs))
        self.pause("done", self._steps)
        sys.settrace(None)
        answers = []
        for (kind, value), (_, args, kwargs) in zip(results, self.ask["calls"], strict=True):
            answer: dict[str, Any] = {kind: encode(value) if kind == "value" else value}
            if keep:
                answer["arguments"] = [encode(list(args)), encode(dict(kwargs))]
            answers.append(answer)
        return {"answers": answers}

    def _tested(self, node: str) -> dict[str, Any]:
        import pytest

        seen = _Seen()
        words = ["-p", "no:cacheprovider", "-o", "addopts=", f"--rootdir={self.config['tree']}", "-q"]
        words += [word for name in self.config["plugins"] for word in ("-p", name)]
        status = 0
        try:
            status = int(pytest.main([*words, node], plugins=[seen]))
        except BaseException as error:  # noqa: BLE001 - likewise
            seen.text = f"{type(error).__name__}: {error}"
        return {"phases": seen.phases, "text": seen.text[-4000:], "status": status}


class _Seen:
    """A plugin of pytest: what each phase of the one test came to."""

    def __init__(self) -> None:
        self.phases: dict[str, str] = {}
        self.text = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called by pytest for each phase."""
        if self.phases.get(report.when) != "failed":
            self.phases[report.when] = report.outcome
        if report.outcome != "passed":
            self.text = str(report.longrepr)

    def pytest_collectreport(self, report: Any) -> None:
        """Called by pytest for what it found or could not read."""
        if report.outcome != "passed":
            self.phases["collect"] = report.outcome
            self.text = str(report.longrepr)


def _answer(function: Any, args: Any, kwargs: Any) -> tuple[str, Any]:
    """What a call comes to: `value` and the value, or `raises` and the class's name."""
    if isinstance(function, BaseException):
        return "raises", type(function).__name__
    try:
        value = plain(function(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001 - likewise
        return "raises", type(error).__name__
    return "value", value


class Parent:
    """Between the judge and the forks."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        root = config["root"]
        # Both ends at once, so that nobody waits for the other to open; then the names are taken away.
        self._asked = os.open(f"{root}/{config['asked']}", os.O_RDONLY)
        self._told = os.open(f"{root}/{config['told']}", os.O_WRONLY)
        for name in ("asked", "told"):
            os.unlink(f"{root}/{config[name]}")  # noqa: PTH108
        prctl(_SUBREAPER, 1)
        prctl(_DUMPABLE, 0)

    def serve(self) -> None:
        """Answer until the judge has no more questions."""
        while True:
            size = self._exactly(4)
            if not size:
                return
            ask = marshal.loads(self._exactly(struct.unpack("<I", size)[0]))
            header, words = self._one(ask)
            data = json.dumps(header).encode()
            self._send(struct.pack("<II", len(data), len(words)) + data + words)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = os.read(self._asked, count - len(data))
            if not piece:
                return b""
            data += piece
        return data

    def _send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._told, data) :]

    def _one(self, ask: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Fork, follow the fork to its end, clear up; what the kernel says of it, and what it said itself."""
        if ask["test"]:
            import pytest  # noqa: F401 - the forks have it then, as it is before any candidate's code ran
        gc.freeze()
        hear, say = os.pipe()
        wait, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                for end in (hear, go, self._asked, self._told):
                    os.close(end)
                Fork(self.config, ask, say, wait).run()
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
            finally:
                os._exit(code)
        os.close(say)
        os.close(wait)
        words, clocks, late = self._follow(pid, hear, go, ask)
        os.close(go)
        if late:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        left, orphans = self._end_all()
        words += _rest(hear) if not late else b""
        os.close(hear)
        header = {
            "code": os.waitstatus_to_exitcode(status),
            "clocks": clocks,
            "processor": used.ru_utime + used.ru_stime + orphans,
            "late": late,
            "left": left,
            "spoilt": self._clear(),
        }
        return header, words

    def _follow(
        self, pid: int, hear: int, go: int, ask: dict[str, Any]
    ) -> tuple[bytes, dict[str, float], bool]:
        """Read until the fork has said its last word; the words, its clock at each stage, whether too late."""
        nonce, words, seen = ask["nonce"].encode(), b"", 0
        clocks: dict[str, float] = {}
        until = time.monotonic() + ask["limit_s"]
        while len(words) < MOST_BYTES:
            left = until - time.monotonic()
            if left <= 0 or not select.select([hear], [], [], left)[0]:
                return words, clocks, True
            piece = os.read(hear, 1 << 16)
            if not piece:
                return words, clocks, False
            words += piece
            while (end := words.find(b"\n", seen)) >= 0:
                mine, kind = [*words[seen:end].split(b" ", 2), b"", b""][:2]
                seen = end + 1
                if mine == nonce and kind in (b"ready", b"done", b"end"):
                    clocks.setdefault(kind.decode(), _clock_of(pid))
                    with contextlib.suppress(OSError):
                        os.write(go, b".")
                    if kind == b"end":
                        return words, clocks, False
        return words, clocks, True

    def _end_all(self) -> tuple[int, float]:
        """End and collect what the fork left; how many there were, and their processor seconds."""
        count, spent = 0, 0.0
        until = time.monotonic() + 5
        while time.monotonic() < until:
            try:
                pid, _, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return count, spent
            if pid:
                count, spent = count + 1, spent + used.ru_utime + used.ru_stime
                continue
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
            time.sleep(0.002)
        return count + 1, spent

    def _clear(self) -> bool:
        """Take away all files of the fork; True when something stays."""
        for place in (self.config["root"], *self.config["scratch"]):
            for name in _names(place):
                path = f"{place}/{name}"
                if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                    shutil.rmtree(path, onerror=_harder)
                else:
                    with contextlib.suppress(OSError):
                        os.unlink(path)  # noqa: PTH108
        stays = any(_names(place) for place in (self.config["root"], *self.config["scratch"]))
        for path in self.config["make"]:
            with contextlib.suppress(OSError):
                os.mkdir(path, 0o700)  # noqa: PTH102
        return stays


def _names(place: str) -> list[str]:
    try:
        return os.listdir(place)  # noqa: PTH208
    except OSError:
        return []


def _harder(function: Callable[..., Any], path: str, _error: Any) -> None:
    """A directory that was locked is opened before it is taken away."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)  # noqa: PTH101, PTH120
        os.chmod(path, 0o700)  # noqa: PTH101
        if function in (os.rmdir, os.unlink):
            function(path)
        else:
            shutil.rmtree(path, ignore_errors=True)


def _rest(hear: int) -> bytes:
    """What was said after the last word; nobody who could say more is alive."""
    words = b""
    os.set_blocking(hear, False)
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(hear, 1 << 16):
            words += piece
            if len(words) > MOST_BYTES:
                break
    return words


def _clock_of(pid: int) -> float:
    """Processor seconds of another process so far, as the kernel counts them."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return -1.0


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:  # noqa: PTH123
        given = marshal.load(file)
    sys.path[:] = [path for path in sys.path if path and not path.startswith(given["given"])] + given[
        "packages"
    ]
    Parent(given).serve()
