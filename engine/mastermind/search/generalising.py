"""One recipe out of several goals of one shape: the words that differ become its parameters.

A recipe is made only where filling it in gives back, for each of the goals, exactly the steps that were done.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.library.parameters import TYPES, ParameterType
from engine.library.pattern import MAX_LENGTH
from engine.library.template import FILTERS, fill
from engine.library.words import Word, words_of
from engine.mastermind.search.history import Json
from engine.mastermind.search.planning import Done, call_of

LEAST = 2
"""Goals of one shape from which a recipe is learned."""
_PREFERRED = ("number", "url", "filename", "path", "quoted", "text")
"""Types of a parameter, the narrowest first."""
_SPECIAL = re.compile(r"[()\[\]|{}]")
_SLOT_LIKE = re.compile(r"\{([a-z][a-z0-9_]*(?:\|[a-z]+)*)\}")
_FILTERS = ("stem", "snake", "slug", "camel", "title")


@dataclass(frozen=True, slots=True)
class Learned:
    """A recipe that was learned."""

    name: str
    pattern: str
    text: str
    """As TOML."""
    of: tuple[Done, ...]


def learn(done: Sequence[Done]) -> Iterator[Learned]:
    """A recipe for each shape of which there are enough goals, in the order of their first ones."""
    shapes: dict[tuple[object, ...], list[Done]] = {}
    for one in done:
        if one.by_hand and (shape := _shape(one)) is not None:
            shapes.setdefault(shape, []).append(one)
    for those in shapes.values():
        if len({one.ref for one in those}) >= LEAST and (made := _recipe(those)) is not None:
            yield made


def _words(text: str) -> list[Word]:
    return [word for word in words_of(text) if not word.soft]


def _shape(one: Done) -> tuple[object, ...] | None:
    words = _words(one.text)
    if not words or not words[0].key or _SPECIAL.search(words[0].key):
        return None
    steps = tuple(
        (
            step.get("op", "act"),
            step.get("tool", ""),
            step.get("command", ""),
            tuple(sorted(step.get("args", {}))),
        )
        for step in one.steps
    )
    return words[0].key, len(words), steps


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    kind: ParameterType
    values: tuple[str, ...]
    """Of each goal."""


def _recipe(those: Sequence[Done]) -> Learned | None:
    rows = [_words(one.text) for one in those]
    pieces: list[str] = []
    parameters: list[_Parameter] = []
    for column in zip(*rows, strict=True):
        first = column[0]
        if all(word.key == first.key and not word.quoted for word in column):
            if _SPECIAL.search(first.key):
                return None
            pieces.append(first.key)
            continue
        kind = next((TYPES[name] for name in _PREFERRED if all(map(TYPES[name].accepts, column))), None)
        if kind is None or not pieces:
            return None
        name = f"{kind.name}_{len(parameters) + 1}"
        parameters.append(_Parameter(name, kind, tuple(word.value for word in column)))
        pieces.append(f"{{{name}:{kind.name}}}")
    pattern = " ".join(pieces)
    steps = _steps(those, parameters)
    if steps is None or len(pattern) > MAX_LENGTH:
        return None
    digest = hashlib.sha256(json.dumps([pattern, steps], sort_keys=True).encode()).hexdigest()[:6]
    verb = re.sub(r"[^a-z0-9]+", "-", rows[0][0].key).strip("-") or "goal"
    name = f"learned-{verb[:30]}-{digest}"
    return Learned(name, pattern, _toml(name, pattern, those, steps), tuple(those))


def _steps(those: Sequence[Done], parameters: Sequence[_Parameter]) -> list[dict[str, Any]] | None:
    """The steps as templates; None where they do not give back what was done."""
    filled = [{p.name: p.values[row] for p in parameters} for row in range(len(those))]
    found = []
    for place in range(len(those[0].steps)):
        column = [one.steps[place] for one in those]
        running = column[0].get("command") in ("run", "start")
        args = _template([step.get("args", {}) for step in column], filled, parameters, running)
        if args is None:
            return None
        found.append({"op": column[0].get("op", "act"), **_called(column[0]), "args": args})
    return found


def _called(step: Json) -> dict[str, str]:
    return {name: step[name] for name in ("tool", "command") if step.get(name)}


def _template(
    values: Sequence[Any],
    filled: Sequence[Mapping[str, str]],
    parameters: Sequence[_Parameter],
    running: bool,
) -> Any:
    """A value that filling in turns into each of the values; None where there is none."""
    first = values[0]
    if isinstance(first, str) and all(isinstance(one, str) for one in values):
        for candidate in _candidates(first, parameters, running):
            if all(fill(candidate, row) == value for row, value in zip(filled, values, strict=True)):
                return candidate
        return None
    if isinstance(first, dict) and all(isinstance(v, dict) and v.keys() == first.keys() for v in values):
        made = {key: _template([v[key] for v in values], filled, parameters, running) for key in first}
        return None if None in made.values() else made
    if isinstance(first, list) and all(isinstance(v, list) and len(v) == len(first) for v in values):
        # A command as a list goes past the check of quoted parameters, and needs none.
        items = [_template([v[i] for v in values], filled, parameters, False) for i in range(len(first))]
        return None if None in items else items
    return first if all(one == first for one in values) and first is not None else None


def _candidates(text: str, parameters: Sequence[_Parameter], running: bool) -> Iterator[str]:
    """Templates that a text may be of, the likeliest first."""
    plain = _SLOT_LIKE.sub(r"{{\1}}", text)
    ways: list[tuple[str, str]] = []
    for parameter in sorted(parameters, key=lambda one: -len(one.values[0])):
        end = "|shell" if running and parameter.kind.name != "number" else ""
        for chain in ("", *_FILTERS):
            value = FILTERS[chain](parameter.values[0]) if chain else parameter.values[0]
            slot = f"{{{parameter.name}{f'|{chain}' if chain else ''}{end}}}"
            if value and value in text:
                ways.append((value, slot))
    for bounded in (True, False):
        made = plain
        taken: list[str] = []
        for value, slot in ways:
            if any(value in other for other in taken):
                continue
            # Names of slots already put in are no text to be replaced.
            parts = re.split(r"(\{[a-z][a-z0-9_|]*\})", made)
            sought = rf"(?<!\w){re.escape(value)}(?!\w)" if bounded else re.escape(value)
            parts[::2] = [re.sub(sought, lambda _m, s=slot: s, part) for part in parts[::2]]
            if (now := "".join(parts)) != made:
                made = now
                taken.append(value)
        yield made
    yield plain


def _toml(name: str, pattern: str, those: Sequence[Done], steps: Sequence[Mapping[str, Any]]) -> str:
    hand = f"Learned from {len(those)} goals that were done by hand."
    lines = [
        "[[recipe]]",
        f"name = {_value(name)}",
        f"summary = {_value(hand)}",
        f"example = {_value(those[0].text[:300])}",
        f"says = [{_value(pattern)}]",
    ]
    for step in steps:
        lines += ["", "[[recipe.steps]]"]
        lines += [f"{key} = {_value(value)}" for key, value in step.items()]
        words = f"{step.get('command') or step['op']} as in “{those[0].text}”"
        lines.append(f"description = {_value(_SLOT_LIKE.sub('', words)[:200])}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A value as TOML; JSON's strings, numbers and switches are TOML's too."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(k))} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def same(done: Done, calls: Sequence[str]) -> bool:
    """Whether a plan is what was done."""
    return tuple(calls) == tuple(call_of(step) for step in done.steps)
