"""Imports one function, tells what it takes, and calls it; a program of its own that runs inside the sandbox.

Its source is handed to an interpreter in the jail by `engine.mcp.custom`; nothing of the house is imported
here. What the function prints goes to standard error. Argument: a JSON object with `root`, `path`, `call`
and, for a call, `args`. The answer is one line of JSON on the standard output that the program was started
with.
"""

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


def schema_of(hint: Any, name: str) -> dict[str, Any]:
    """The JSON Schema of a type hint."""
    if hint is typing.Any or hint is object:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(one, name) for one in inner]}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin is typing.Annotated:
        return schema_of(inner[0], name)
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return {"enum": [one.value for one in hint]}
    kind = origin or hint
    if hint is dict or typing.is_typeddict(hint) or (inspect.isclass(kind) and issubclass(kind, abc.Mapping)):
        return {"type": "object"}
    if inspect.isclass(kind) and issubclass(kind, abc.Collection):
        items = [one for one in inner if one is not Ellipsis]
        return {"type": "array", **({"items": schema_of(items[0], name)} if len(items) == 1 else {})}
    raise WrongError(f"the parameter {name} has the type {hint}, which JSON cannot say")


def look_up(path: str) -> Any:
    """The function at a dotted path, imported."""
    room, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(room), name, None)
    if found is None:
        raise WrongError(f"{room} has no {name}")
    if not callable(found) or inspect.isclass(found):
        raise WrongError(f"{path} is no function")
    return found


def described(function: Any, path: str) -> dict[str, Any]:
    """What a function takes and says of itself."""
    words = inspect.getdoc(function) if getattr(function, "__doc__", None) else ""
    if not words:
        raise WrongError(f"{path} has no docstring")
    hints = typing.get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, one in inspect.signature(function).parameters.items():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
            raise WrongError(f"the parameter {name} cannot be given by name")
        if name not in hints:
            raise WrongError(f"the parameter {name} has no type hint")
        properties[name] = schema_of(hints[name], name)
        if one.default is one.empty:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "description": words.strip().splitlines()[0],
        "schema": {**schema, "additionalProperties": False},
    }


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What is asked, as an object with `ok`, `description`, `schema`, `result` or `error`."""
    sys.path[:0] = [asked["root"]]
    stage = "import"
    try:
        function = look_up(asked["path"])
        told = described(function, asked["path"])
        if not asked["call"]:
            return {"ok": True, **told}
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
