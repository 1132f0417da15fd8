"""Custom Python functions as tools: imported, inspected and called in the sandbox's jail, never here.

A function is named by a dotted path under an allowed prefix; its module is beneath the sandbox root. Each
inspection and each call is a process of its own, so that a module that prints, sleeps, ends its process or
raises on import does no harm. Every parameter needs a type hint and the function a docstring; the JSON Schema
that follows from the hints is compared with the one that was declared.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.ports import CallContext, CommandSpec, Parameter
from engine.core.text import clean_line
from engine.sandbox.jail import Launch
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.process import Ended, Launcher, ProcessResult
from engine.sandbox.programs import BASE_PYTHON, child_environment
from engine.sandbox.tier import JailRefusal, best_jail
from engine.tools.mcp.health import truncate_result

PREFIXES = ("custom_tools",)
"""Packages beneath the sandbox root that functions may come from, where nothing else is said."""
LOOK_S = 10.0
CALL_S = 60.0
ARGUMENTS_LIMIT = 100_000
"""Characters of a call's arguments as JSON: they are handed over on a command line."""
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object"})


class CustomFunctionError(Exception):
    """A function that cannot be a tool, or a call that did not come to an answer; the message says why."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.EXIT_STATUS) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class CustomFunction:
    """A function that can be called."""

    name: str
    path: str
    """Dotted."""
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of its arguments, from its type hints."""


class CustomFunctions:
    """The functions beneath one sandbox root, as a tool `custom` of the engine.

    Args:
        root: the sandbox root.
        policy: how processes are held.
        prefixes: packages that functions may come from.
    """

    id = "custom"
    description = "Python functions of the workspace, run in the sandbox"
    foreign = True
    """What it offers comes from outside, and is on record (`engine.agent.shared`)."""

    def __init__(self, root: Path, policy: SandboxPolicy, prefixes: tuple[str, ...] = PREFIXES) -> None:
        self._root, self._policy, self._prefixes = root, policy, prefixes
        self._functions: dict[str, CustomFunction] = {}
        self._commands: dict[str, CommandSpec] = {}

    @property
    def commands(self) -> Mapping[str, CommandSpec]:
        """The functions that were added, as commands."""
        return self._commands

    async def look(self, name: str, path: str, declared: Mapping[str, Any] | None = None) -> CustomFunction:
        """Import a function in the sandbox and see whether it can be a tool.

        Args:
            name: the tool's name.
            path: dotted, under an allowed prefix.
            declared: JSON Schema that was declared of its arguments; None where none was.

        Raises:
            CustomFunctionError: it cannot.
        """
        self._check_path(path)
        answer = await self._asked({"path": path, "call": False}, LOOK_S)
        schema = answer.get("schema")
        if not isinstance(schema, dict) or not isinstance(answer.get("description"), str):
            raise CustomFunctionError(f"{path} answered what is no description")
        if declared is not None and (differences := compare(declared, schema)):
            raise CustomFunctionError(f"{path}: {'; '.join(differences)}", ErrorCode.BAD_ARGUMENTS)
        return CustomFunction(name, path, clean_line(answer["description"], limit=300), schema)

    def add(self, function: CustomFunction) -> None:
        """Offer a function as a command.

        Raises:
            ValueError: there is one of that name.
        """
        if function.name in self._functions:
            raise ValueError(f"a custom tool named {function.name!r} is there already")
        self._functions[function.name] = function
        needed = set(function.schema.get("required", ()))
        parameters = tuple(
            Parameter(name, name.replace("_", " "), _kind(hint), required=name in needed)
            for name, hint in function.schema.get("properties", {}).items()
        )
        self._commands[function.name] = CommandSpec(
            function.name,
            function.description,
            parameters,
            mutates=True,
            undo="workspace",
            schema=function.schema,
        )

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Call a function in the sandbox; see `engine.core.ports.Tool.call`."""
        function = self._functions[command]
        limit_s = min(context.timeout_s or CALL_S, CALL_S)
        try:
            asked = {"path": function.path, "call": True, "args": dict(args)}
            answer = await self._asked(asked, limit_s, context)
        except CustomFunctionError as error:
            refused = error.code in (ErrorCode.BAD_ARGUMENTS, ErrorCode.NOT_ALLOWED)
            status = ResultStatus.ERROR if refused else ResultStatus.FAILURE
            return ToolResult(status, {"message": str(error)}, error.code)
        return ToolResult(ResultStatus.SUCCESS, {"content": truncate_result(str(answer.get("result", "")))})

    def _check_path(self, path: str) -> None:
        allowed = any(path.startswith(f"{prefix}.") for prefix in self._prefixes)
        if not _PATH.fullmatch(path) or not allowed:
            prefixes = ", ".join(f"{prefix}.…" for prefix in self._prefixes)
            raise CustomFunctionError(
                f"{clean_line(path, limit=80)!r} may not be used; "
                f"a function is a dotted path under {prefixes}",
                ErrorCode.NOT_ALLOWED,
            )

    async def _asked(
        self, asked: dict[str, Any], limit_s: float, context: CallContext | None = None
    ) -> dict[str, Any]:
        """What the program in the sandbox answers.

        Raises:
            CustomFunctionError: it did not, or said that it cannot.
        """
        try:
            text = json.dumps(asked | {"root": str(self._root)})
        except (TypeError, ValueError) as error:
            raise CustomFunctionError(
                f"the arguments are no JSON: {error}", ErrorCode.BAD_ARGUMENTS
            ) from None
        if len(text) > ARGUMENTS_LIMIT:
            raise CustomFunctionError(
                f"the arguments are longer than {ARGUMENTS_LIMIT:,} characters", ErrorCode.BAD_ARGUMENTS
            )
        result = await self._run(text, limit_s, context)
        line = result.stdout.strip().rpartition("\n")[2]
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise _ended(asked["path"], result, limit_s)
        if answer.get("ok") is not True:
            where = "on import" if answer.get("stage") == "import" else "when it was called"
            raise CustomFunctionError(
                f"{asked['path']} {where}: {clean_line(str(answer.get('error')), limit=500)}"
            )
        return answer

    async def _run(self, text: str, limit_s: float, context: CallContext | None) -> ProcessResult:
        jail = await asyncio.to_thread(best_jail, self._policy)
        if isinstance(jail, JailRefusal):
            raise CustomFunctionError(jail.message, ErrorCode.NOT_ALLOWED)
        argv = (str(BASE_PYTHON), "-I", "-B", "-u", "-c", _harness(), text)
        env = child_environment(self._root, self._policy, None)
        sink = context.output if context is not None else (lambda _stream, _text: None)
        cwd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return await Launcher(self._root, self._policy).run(
                Launch(argv[0], argv, env),
                cwd,
                jail=jail,
                limit_s=limit_s,
                output=lambda stream, line: sink(stream, line) if stream == "stderr" else None,
            )
        finally:
            os.close(cwd)


def compare(declared: Mapping[str, Any], hinted: Mapping[str, Any]) -> list[str]:
    """How a declared schema differs from that of the type hints, in words; descriptions do not count."""
    named, have = declared.get("properties", {}), hinted.get("properties", {})
    if not isinstance(named, Mapping):
        return ["its declared properties are no object"]
    out = [f"{name} is declared and the function does not take it" for name in named if name not in have]
    out += [f"{name} is taken by the function and not declared" for name in have if name not in named]
    for name in named:
        kind = named[name].get("type") if isinstance(named[name], Mapping) else None
        real = have.get(name, {}).get("type")
        if kind is not None and real is not None and kind != real:
            out.append(f"{name} is declared as {kind} and hinted as {real}")
    needed = declared.get("required", [])
    stated = set(map(str, needed)) if isinstance(needed, list) else set()
    missing = sorted(set(hinted.get("required", [])) & set(named) - stated)
    out += [f"{name} is needed by the function and not declared as required" for name in missing]
    return out


def _ended(path: str, result: ProcessResult, limit_s: float) -> CustomFunctionError:
    if result.ended is Ended.TIMEOUT:
        return CustomFunctionError(f"{path} took longer than {limit_s:g} s and was ended", ErrorCode.TIMEOUT)
    if result.ended is Ended.EXIT:
        last_words = clean_line(result.stderr[-300:])
        words = f"{path} ended its process with {result.return_code}"
        return CustomFunctionError(f"{words}: {last_words}" if last_words else words)
    return CustomFunctionError(f"{path} was ended: {result.ended} {result.problem}".rstrip())


@cache
def _harness() -> str:
    return Path(__file__).with_name("custom_harness.py").read_text(encoding="utf-8")


def _kind(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return kind if isinstance(kind, str) and kind in _TYPES else "any"
