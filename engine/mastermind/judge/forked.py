"""The side of a question that runs candidate code, in a fork of its own; `inside` is the other.

Stand-alone: it is laid into the box beside the program and loads nothing of the house.
"""

from __future__ import annotations

import json
import os
import sys
import time
import types
from typing import Any

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


def _under(path: str, places: list[str]) -> bool:
    return any(path == one or path.startswith(one + "/") for one in places)


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
        real = self._real(os.fsdecode(path))
        looks = how in ("read", "list")
        if _under(real, [self.config["store"]]):
            free = [self.config["root"], *([self.config["laid"], *self.config["packages"]] if looks else [])]
        else:
            free = self.config["free_to_read"] if looks else self.config["free_to_write"]
        if not _under(real, free):
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
