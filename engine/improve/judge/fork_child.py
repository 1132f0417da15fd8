"""Runs candidate code to answer one question, in a fork of its own; `fork_server` is its parent.

Stand-alone: it is copied into the box beside the server and loads nothing of Pilothouse.
"""

from __future__ import annotations

import ast
import builtins
import io
import json
import os
import resource
import shutil
import signal
import sys
import time
import types
from collections import Counter, deque
from contextlib import redirect_stderr
from importlib.machinery import SourceFileLoader
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
_HOLDING = frozenset({"pytest", "_pytest"})
"""What runs tests; it stays as it was loaded."""
_LONGEST = 200_000
_ASLEEP = 20
"""Times its processor seconds that a call may take by the clock."""


def iterator_items(value: Any) -> Any:
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
    return any(path == place or path.startswith(place + "/") for place in places)


class Fork:
    """The side of a question that runs candidate code; nothing of it returns."""

    def __init__(self, config: dict[str, Any], ask: dict[str, Any], say: int, go: int) -> None:
        self.config, self.ask = config, ask
        self._say, self._go, self._nonce = say, go, ask["nonce"]
        self._told: set[tuple[str, str]] = set()
        self._write, self._read, self._dump = os.write, os.read, json.dumps
        self._real, self._parent = os.path.realpath, os.getppid()
        nodes = [node.partition("::")[0] for node in ask["tests"]]
        mine = {self._real(os.path.join(config["tree"], node)) for node in nodes}  # noqa: PTH118
        # A held-out test that is asked is read by pytest; nothing else has a reason to.
        self._sealed = set() if mine & set(config["sealed"]) else set(config["sealed"])

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
        tree = self.config["tree"]
        if self.ask["files"] is not None:
            tree = self._trial_tree(tree)
        for name in self.config["imports"]:
            sys.path.insert(0, os.path.normpath(os.path.join(tree, name)))  # noqa: PTH118
        self._forget(sys.path[: len(self.config["imports"])])
        os.chdir(tree)
        os.environ.pop("PYTHONHASHSEED", None)  # what only judging has is not to be seen
        sys.argv[:] = ["main.py"]
        if most := self.ask["processor_s"]:
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        sys.addaudithook(self._hook)
        answer = self._called() if self.ask["calls"] else self._tested(tree)
        answer["clocks"] = [name for name, entry in _CLOCK.items() if getattr(time, name, None) is not entry]
        self.pause("end", answer)
        os._exit(0)

    def _forget(self, places: list[str]) -> None:
        """Have modules that the project has itself loaded from it, where pytest or a plugin loaded others."""
        there = filter(os.path.isdir, places)
        mine = {name.partition(".")[0] for place in there for name in os.listdir(place)}  # noqa: PTH208
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None) or ""
            if name.partition(".")[0] in mine - _HOLDING and _under(path, self.config["packages"]):
                del sys.modules[name]

    def _trial_tree(self, tree: str) -> str:
        """A copy of the project with other contents of some files; it is cleared after the question."""
        laid, room = self.config["laid"], f"{self.config['root']}/trial"
        for folder, _, names in os.walk(laid):  # the jail forbids copying times and modes
            there = room + folder.removeprefix(laid)
            os.mkdir(there)  # noqa: PTH102
            for name in names:
                shutil.copyfile(f"{folder}/{name}", f"{there}/{name}")
        for path, text in self.ask["files"].items():
            with open(f"{room}/{path}", "wb") as file:  # noqa: PTH123
                file.write(text.encode("utf-8", "surrogateescape"))
        return room + tree.removeprefix(laid)

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

    def _touched(self, how: str, path: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        real = self._real(os.fsdecode(path))
        looks = how in ("read", "list")
        if real in self._sealed:
            self._note(how, real)
            return
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

        work = Work(self.ask["work"]) if self.ask["work"] else None
        if work is not None:
            count_within(self.config["laid"], work)
        if self.ask["call_s"]:
            signal.signal(signal.SIGALRM, _late)
            signal.signal(signal.SIGPROF, _late)
        functions: list[Any] = []
        for target, *_ in self.ask["calls"]:
            module, _, name = target.partition(":")
            try:
                value: Any = importlib.import_module(module)
                for part in name.split("."):
                    value = getattr(value, part)
            except BaseException as error:  # noqa: BLE001 - whatever candidate code raises is its answer
                value = error
            functions.append(value)
        results: list[Any] = []
        keep = not self.ask["measured"]
        first = self.ask["ready"]
        calls = zip(functions, self.ask["calls"], strict=True)
        given: list[Any] = []
        shares: list[list[Any]] = []
        for number, (function, (_, args, kwargs, again)) in enumerate(calls):
            if number == first:
                self.pause("ready")
                if work is not None:
                    work.begin()
            given.append(_changed(given[-1]) if again and given else args)
            kind, value = _answer(function, given[-1], kwargs, self.ask["call_s"])
            if keep:
                shares.append(_shared(value, given[-1], [result for _, result, _ in results]))
            results.append((kind, value, encode(list(given[-1])) if keep else None))
        if work is not None:
            work.end()
        self.pause("done")
        answers = []
        for place, (kind, value, args) in enumerate(results):
            answer: dict[str, Any] = {kind: encode(value) if kind == "value" else value}
            if keep:
                kwargs = self.ask["calls"][place][2]
                answer |= {"arguments": [args, encode(dict(kwargs))], "shares": shares[place]}
            answers.append(answer)
        return {"answers": answers, "work": work.done if work is not None else 0}

    def _tested(self, tree: str) -> dict[str, Any]:
        import pytest

        results = _Results(f"{tree}/" if self.ask["lines"] else "")
        words = ["-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]
        words += [f"--rootdir={tree}", "-q", "--tb=short", *self.ask["tests"]]
        words += [word for name in self.config["plugins"] for word in ("-p", name)]
        status, said = 0, io.StringIO()
        try:
            with redirect_stderr(said):
                status = int(pytest.main(words, plugins=[results]))
            if status > 1 and status != pytest.ExitCode.NO_TESTS_COLLECTED:
                results.text = results.text or said.getvalue()
        except BaseException as error:  # noqa: BLE001 - likewise
            results.text = f"{type(error).__name__}: {error}"
        return {"tests": results.tests, "text": results.text[-4000:], "status": status}


_MUTABLE = (list, dict, set, bytearray, deque)


def _changed(given: Any) -> Any:
    """The same arguments, with each list changed in place."""
    for value in given:
        if type(value) is list and value:
            value[:] = [*value[1:], value[min(1, len(value) - 1)]]
    return given


def _shared(value: Any, given: Any, earlier: list[Any]) -> list[Any]:
    """Which arguments and which earlier results can be changed by way of a result."""
    inner = value.values() if type(value) is dict else value if type(value) in (list, tuple, deque) else ()
    reached = {id(item) for item in (value, *list(inner)[:50]) if isinstance(item, _MUTABLE)}
    arguments = [place for place, item in enumerate(given) if id(item) in reached]
    return [arguments, any(id(item) in reached for item in earlier if isinstance(item, _MUTABLE))]


def _late(*_: Any) -> None:
    raise TimeoutError


_PLAIN = (type(None), bool, int, float, str, bytes, list, tuple, dict, set, frozenset)
_RECORDED, _RECORDED_TEXT = 6, 600
_FOLLOWED = 300
"""Calls of one function in one test whose lines are noted."""


class _Results:
    """A plugin of pytest: the phases of each test, and the lines below a directory that it ran."""

    def __init__(self, top: str) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.text = ""
        self._top = top
        self._lines: dict[str, set[int]] = {}
        self._inputs: dict[str, list[str]] = {}
        self._calls: Counter[Any] = Counter()

    def _entry(self, node: str) -> dict[str, Any]:
        return self.tests.setdefault(
            node, {"phases": {}, "message": "", "line": 0, "lines": {}, "seconds": 0.0}
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called by pytest for each phase."""
        entry = self._entry(report.nodeid)
        entry["seconds"] += report.duration
        if entry["phases"].get(report.when) != "failed":
            expected = report.outcome == "skipped" and hasattr(report, "wasxfail")
            entry["phases"][report.when] = "xfailed" if expected else report.outcome
        if report.outcome != "passed":
            self.text = str(report.longrepr)
            crash = getattr(report.longrepr, "reprcrash", None)
            entry["message"] = (crash.message if crash is not None else self.text)[:600]
            entry["line"] = crash.lineno if crash is not None else 0
            frames = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", ())
            places = [place for frame in frames if (place := getattr(frame, "reprfileloc", None))]
            entry["frames"] = [(place.path, place.lineno) for place in places]

    def pytest_collectreport(self, report: Any) -> None:
        """Called by pytest for what it collected or could not read."""
        if report.outcome != "passed":
            self.text = str(report.longrepr)
            entry = self._entry(report.nodeid or "collection")
            entry["phases"]["collect"] = report.outcome
            entry["message"] = self.text.strip()[-600:]

    def pytest_runtest_call(self, item: Any) -> None:
        """Called by pytest before a test runs."""
        if self._top:
            self._lines, self._inputs, self._calls = {}, {}, Counter()
            sys.settrace(self._trace)

    def pytest_runtest_teardown(self, item: Any) -> None:
        """Called by pytest after a test ran."""
        if self._top:
            sys.settrace(None)
            lines = {path.removeprefix(self._top): sorted(numbers) for path, numbers in self._lines.items()}
            inputs = {name: texts for name, texts in self._inputs.items() if texts}
            self._entry(item.nodeid).update(lines=lines, inputs=inputs)

    def _record(self, frame: Any) -> None:
        """Note what a function was called with."""
        code = frame.f_code
        known = self._inputs.setdefault(code.co_name, [])
        if len(known) < _RECORDED and code.co_argcount and not code.co_kwonlyargcount:
            given = tuple(frame.f_locals[name] for name in code.co_varnames[: code.co_argcount])
            if all(type(value) in _PLAIN for value in given):
                text = repr(given)
                if len(text) < _RECORDED_TEXT and text not in known:
                    known.append(text)

    def _trace(self, frame: Any, _event: str, _argument: Any) -> Any:
        path = frame.f_code.co_filename
        self._calls[frame.f_code] += 1
        if not path.startswith(self._top) or self._calls[frame.f_code] > _FOLLOWED:
            return None
        lines = self._lines.setdefault(path, set())
        self._record(frame)

        def each(frame: Any, event: str, _argument: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return each

        lines.add(frame.f_lineno)
        return each


def _answer(function: Any, args: Any, kwargs: Any, limit_s: float) -> tuple[str, Any]:
    """The result of a call: `value` and the value, or `raises` and the class's name."""
    if isinstance(function, BaseException):
        return "raises", type(function).__name__
    try:
        if limit_s:
            signal.setitimer(signal.ITIMER_PROF, limit_s)  # a busy machine does not make a call late
            signal.setitimer(signal.ITIMER_REAL, _ASLEEP * limit_s)
        value = iterator_items(function(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001 - likewise
        return "raises", type(error).__name__
    finally:
        if limit_s:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
    return "value", value


_LINE_WORK = 4
"""Work of running a line, where looking at one element of a list is 1."""
_SEQUENCES = (list, tuple, str, bytes, bytearray, deque)
_COLLECTIONS = (list, tuple, set, frozenset, dict, deque)
_COPYING = (list, tuple, set, frozenset, dict, bytes, bytearray)
_AT_ONCE = frozenset(
    {"len", "isinstance", "iter", "next", "id", "type", "getattr", "hasattr", "append", "appendleft", "print"}
)
"""Built-ins that take as long whatever they are given."""
_LOOKING = frozenset(
    {"index", "count", "remove", "insert", "copy", "sort", "reverse", "find", "replace", "split", "strip"}
)
"""Methods that look at all that their object holds."""
_OWN_FRAME = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec"})
"""Built-ins that ask who calls them."""


class _EnoughError(BaseException):
    """More work was counted than there is to be."""


class Work:
    """Counts what the project's code does, the same on every machine: lines run, elements looked at.

    Args:
        most: work after which the counting ends.
    """

    def __init__(self, most: int) -> None:
        self.done, self._most, self._counting = 0, most, False

    def begin(self) -> None:
        """Count from here on."""
        self._counting = True
        sys.settrace(self._called)

    def end(self) -> None:
        """Count no more."""
        self._counting = False
        sys.settrace(None)

    def _called(self, frame: Any, _event: str, _argument: Any) -> Any:
        """Follow each function; a module that is loaded meanwhile is not counted."""
        return None if frame.f_code.co_name == "<module>" else self._each

    def _each(self, _frame: Any, event: str, _argument: Any) -> Any:
        if event == "line":
            self._add(_LINE_WORK)
        return self._each

    def _add(self, work: int) -> None:
        self.done += work if self._counting else 0
        if self.done > self._most:
            raise _EnoughError

    def looked_through(self, value: Any) -> Any:
        """The value, which is searched, copied or made from one end to the other."""
        if type(value) in _SEQUENCES:
            self._add(len(value))
        return value

    def calling(self, function: Any) -> Any:
        """The function; one that is built in is made to count what it is given."""
        builtin = isinstance(function, types.BuiltinFunctionType)
        if not (builtin and function.__name__ not in _AT_ONCE) and not (
            isinstance(function, type) and function in _COPYING
        ):
            return function
        held = getattr(function, "__self__", None) if builtin else None

        def counted(*given: Any, **named: Any) -> Any:
            for value in given:
                if type(value) in _COLLECTIONS:
                    self._add(len(value))
            if function.__name__ in _LOOKING or (function.__name__ == "pop" and given):
                self.looked_through(held)
            return function(*given, **named)

        return counted


class _Counting(ast.NodeTransformer):
    """Has `Work` count what happens within a line."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for number, operator in enumerate(node.ops):
            if isinstance(operator, (ast.In, ast.NotIn)):
                node.comparators[number] = _through("__looked_through__", node.comparators[number])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _through("__looked_through__", node) if isinstance(node.op, (ast.Add, ast.Mult)) else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        copies = isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Slice)
        return _through("__looked_through__", node) if copies else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in _OWN_FRAME):
            node.func = _through("__calling__", node.func)
        return node

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        return node


def _through(name: str, value: ast.expr) -> ast.Call:
    made = ast.Call(ast.Name(name, ast.Load()), [value], [])
    return ast.fix_missing_locations(ast.copy_location(made, value))


def count_within(top: str, work: Work) -> None:
    """Have modules below a directory count what they do, once they are loaded."""
    vars(builtins).update(__looked_through__=work.looked_through, __calling__=work.calling)
    usual = SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> Any:
        path = loader.get_filename(name)
        if not path.startswith(f"{top}/"):
            return usual(loader, name)
        tree = ast.parse(loader.get_data(path), path)
        return compile(_Counting().visit(tree), path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment]
