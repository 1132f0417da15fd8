"""Imports one function, describes its arguments, and calls it: a program that runs inside the sandbox.

Its source is given to an interpreter in the jail by `engine.tools.mcp.custom_functions`; it imports nothing
of this project. What the function prints goes to standard error. Its argument is a JSON object with `root`,
`path`, `call` and, for a call, `args`. Its answer is one line of JSON on the standard output that the program
was started with.
"""

from __future__ import annotations

import asyncio
import enum
import importlib
import inspect
import json
import os
import sys
import types
import typing
from collections import abc
from typing import Any

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
RESULT_LIMIT = 25_000


class WrongError(Exception):
    """The function is none that can be a tool; the text says why."""


def _is_kind(hint: Any, base: type) -> bool:
    return inspect.isclass(hint) and issubclass(hint, base)


def schema_of(hint: Any, name: str) -> dict[str, Any]:
    """The JSON Schema of a type hint."""
    if hint is typing.Any or hint is object:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(option, name) for option in inner]}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin is typing.Annotated:
        return schema_of(inner[0], name)
    if _is_kind(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    kind = origin or hint
    if hint is dict or typing.is_typeddict(hint) or _is_kind(kind, abc.Mapping):
        return {"type": "object"}
    if _is_kind(kind, abc.Collection):
        items = [item for item in inner if item is not Ellipsis]
        return {"type": "array", **({"items": schema_of(items[0], name)} if len(items) == 1 else {})}
    raise WrongError(f"the parameter {name} has the type {hint}, which JSON cannot say")


def look_up(path: str) -> Any:
    """The function at a dotted path, imported."""
    module, _, name = path.rpartition(".")
    function = getattr(importlib.import_module(module), name, None)
    if function is None:
        raise WrongError(f"{module} has no {name}")
    if not callable(function) or inspect.isclass(function):
        raise WrongError(f"{path} is no function")
    return function


def described(function: Any, path: str) -> dict[str, Any]:
    """What a function takes and says of itself."""
    words = inspect.getdoc(function) if getattr(function, "__doc__", None) else ""
    if not words:
        raise WrongError(f"{path} has no docstring")
    hints = typing.get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise WrongError(f"the parameter {name} cannot be given by name")
        if name not in hints:
            raise WrongError(f"the parameter {name} has no type hint")
        properties[name] = schema_of(hints[name], name)
        if parameter.default is parameter.empty:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required}
    return {"description": words.strip().splitlines()[0], "schema": {**schema, "additionalProperties": False}}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What is asked, as an object with `ok`, `description`, `schema`, `result` or `error`."""
    sys.path[:0] = [asked["root"]]
    stage = "import"
    try:
        function = look_up(asked["path"])
        description = described(function, asked["path"])
        if not asked["call"]:
            return {"ok": True, **description}
        stage = "call"
        result = function(**asked["args"])
        if inspect.isawaitable(result):

            async def awaited() -> Any:
                return await result

            result = asyncio.run(awaited())
        text = result if isinstance(result, str) else json.dumps(result, default=str, ensure_ascii=False)
        return {"ok": True, "result": text[: RESULT_LIMIT + 1], "length": len(text)}
    except WrongError as error:
        return {"ok": False, "stage": "import", "error": str(error)}
    except BaseException as error:  # noqa: BLE001  SystemExit as well: foreign code ends nothing here
        return {"ok": False, "stage": stage, "error": f"{type(error).__name__}: {error}"[:2_000]}


def main() -> None:
    """Answer, on a descriptor that the function does not know."""
    out = os.dup(1)
    os.dup2(2, 1)
    text = json.dumps(answer(json.loads(sys.argv[1])))
    sys.stdout.flush()
    os.write(out, (text + "\n").encode("ascii", "backslashreplace"))
    os._exit(0)  # threads that the function left behind are not waited for


main()
