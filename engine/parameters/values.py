"""Arguments of the wrong name or type that can mean one thing only."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from engine.domain.action import ErrorCode
from engine.domain.parameters import Correction, shown
from engine.domain.ports import CommandSpec, Parameter
from engine.domain.strict_json import StrictJsonError, read_json
from engine.parameters.likeness import folded
from engine.tools.arguments import Problem, fits

LIKE = 0.75
"""Likeness of two names, from 0 to 1, from which on one is the other misspelt."""
NAME_LIMIT = 60
"""Longest name of an argument that is compared."""
COMPARED = 20
"""Names that are compared; who gives more of them is past guessing."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,3})?")
_LARGEST = 2**53
"""Beyond it a floating-point number no longer says which integer is meant."""


def named_right(
    spec: CommandSpec, args: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Correction], list[Problem]]:
    """The arguments under the command's own names where a name is misspelt in one possible way.

    What is given under a name is never changed here; a name that can mean several is a problem.
    """
    known = {parameter.name for parameter in spec.parameters}
    free = [parameter.name for parameter in spec.parameters if parameter.name not in args]
    unknown = [name for name in args if name not in known]
    meant = {name: _meant(name, free) for name in unknown[:COMPARED]}
    taken = [names[0] for names in meant.values() if len(names) == 1]
    out: dict[str, Any] = {}
    corrections, problems = [], []
    for name, value in args.items():
        names = meant.get(name, [])
        if len(names) == 1 and taken.count(names[0]) == 1:
            out[names[0]] = value
            why = f"{spec.name} has no argument {shown(name)}, and only this one is like it"
            corrections.append(Correction(names[0], name, names[0], "key", why))
            continue
        out[name] = value
        if len(names) > 1:
            readings = " or ".join(shown(each) for each in names)
            text = f"{spec.name}: {shown(name)} can mean {readings}: say which."
            problems.append(Problem(ErrorCode.BAD_ARGUMENTS, text, name))
    return out, corrections, problems


def _meant(name: str, free: list[str]) -> list[str]:
    """The arguments that a name can be a misspelling of, by the first rule that finds any."""
    if len(name) > NAME_LIMIT:
        return []
    key = folded(name)
    same = [other for other in free if folded(other) == key]
    like = [other for other in free if SequenceMatcher(None, key, folded(other)).ratio() >= LIKE]
    within = [other for other in free if folded(other) in key.split("_")]
    return same or like or within


def typed_right(spec: CommandSpec, args: Mapping[str, Any]) -> tuple[dict[str, Any], list[Correction]]:
    """The arguments with texts that spell a number, a truth value, a list or an object read as such."""
    out = dict(args)
    corrections = []
    for parameter in spec.parameters:
        value = args.get(parameter.name)
        if (read := _read(parameter, value)) is not None:
            out[parameter.name], rule = read
            why = f"{parameter.name} is {_KINDS[rule]}, and this spells one"
            corrections.append(Correction(parameter.name, value, out[parameter.name], rule, why))
    return out, corrections


_KINDS = {
    "number": "a number",
    "boolean": "true or false",
    "list": "a list",
    "object": "an object",
}


def _read(parameter: Parameter, value: Any) -> tuple[Any, str] | None:
    """A value as its parameter wants it, and by which rule; None where it is right or may mean several."""
    if parameter.kind == "shell":
        words = _listed(value)
        return (words, "list") if words and all(isinstance(word, str) for word in words) else None
    if parameter.type in ("string", "any") or fits(parameter, value):
        return None
    match parameter.type:
        case "integer":
            return _integer(value)
        case "number" if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            number = float(value)
            if math.isinf(number):
                return None
            return (int(value) if _INTEGER.fullmatch(value.strip()) else number), "number"
        case "boolean" if isinstance(value, str) and value.strip().casefold() in ("true", "false"):
            return value.strip().casefold() == "true", "boolean"
        case "array":
            listed = _listed(value)
            return None if listed is None else (listed, "list")
        case "object" if isinstance(value, str) and isinstance(read := _json(value), dict):
            return read, "object"
    return None


def _integer(value: Any) -> tuple[Any, str] | None:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value), "number"
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        return int(value), "number"
    return None


def _listed(value: Any) -> list[Any] | None:
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return None
    read = _json(value)
    return read if isinstance(read, list) else None


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except StrictJsonError:
        return None
