"""Reads what a model meant: JSON that words stand around, and values that nearly are of a schema.

What code can put right is put right and noted, in a sentence each. What two readers might understand in
different ways (a key that stands twice, different objects side by side) is refused, not guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel

from engine.core.text import DuplicateKeyError, StrictJsonError, clean_line, first_json, read_json, too_deep

LONGEST_REPAIR = 200_000
"""Characters of broken JSON that are mended."""
_OPENING = re.compile(r"""\{\s*(?:["'}]|\w+["']?\s*:)|\[\s*[\[\]{"']""")
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_NOISE = ("title", "default", "maxItems", "minItems", "maxLength", "minLength")
"""What a schema says that no model needs; weak ones repeat it."""

Schema: TypeAlias = dict[str, Any]
Notes: TypeAlias = list[str]


def values_in(text: str, notes: Notes) -> list[Any]:
    """The objects and lists in a text, in order and each once; broken ones are mended and noted.

    Raises:
        StrictJsonError: there are none, or one is ambiguous.
    """
    fenced = [inside for inside in _FENCE.findall(text) if _OPENING.search(inside)]
    if fenced and not _OPENING.search(text[: text.find("```")]):
        text = "\n".join(fenced)
    values: list[Any] = []
    at = 0
    while opening := _OPENING.search(text, at):
        try:
            value, at = first_json(text, opening.start())
        except DuplicateKeyError:
            raise
        except StrictJsonError as error:
            # What follows a broken value cannot be told from it.
            mended = _mended(text[opening.start() :], error)
            notes.append(f"broken JSON was mended ({error})")
            values += mended if values and isinstance(mended, list) else [mended]
            break
        values.append(value)
    if not values:
        raise StrictJsonError("the answer holds no JSON object")
    return list({json.dumps(value): value for value in values}.values())


def _mended(text: str, error: StrictJsonError) -> Any:
    """A broken value put right, where it is clear enough what it is.

    Raises:
        StrictJsonError: it is not.
    """
    import json_repair  # late: hardly any answer needs it

    end = max(text.rfind("}"), text.rfind("]")) + 1
    if len(text) > LONGEST_REPAIR or re.search(r"\b(NaN|-?Infinity)\b", text):
        raise error
    try:
        value = json_repair.loads(text[: end or None], skip_json_loads=True)
    except (ValueError, RecursionError):
        raise error from None
    if not isinstance(value, (dict, list)) or not value or too_deep(value):
        raise error
    return read_json(json.dumps(value))


def small_schema(form: type[BaseModel] | Schema) -> Schema:
    """The JSON Schema of a form as a model is sent it: without titles, defaults and lengths, in one piece."""
    whole = form if isinstance(form, dict) else form.model_json_schema()
    schema: Schema = _small(whole, whole.get("$defs", {}), 0)
    schema.pop("description", None)
    return schema


def _small(value: Any, named: Schema, depth: int) -> Any:
    if isinstance(value, list):
        return [_small(item, named, depth) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value and depth < 8:
        name = value["$ref"].rpartition("/")[2]
        inner = {key: item for key, item in named[name].items() if key != "description"}
        return _small(
            {**inner, **{key: item for key, item in value.items() if key != "$ref"}}, named, depth + 1
        )
    out = {key: _small(item, named, depth) for key, item in value.items() if key not in (*_NOISE, "$defs")}
    if isinstance(value.get("properties"), dict):
        # A property may have the name of a keyword.
        properties = value["properties"].items()
        out["properties"] = {key: _small(item, named, depth) for key, item in properties}
    return out


def example_of(schema: Schema) -> Any:
    """A small value of a schema, with all that is required."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0])
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            shown = schema.get("required") or list(properties)[:1]
            return {name: example_of(properties.get(name, {})) for name in shown}
        case "array":
            return [example_of(schema.get("items", {}))]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return "…"


def fitted(value: Any, schema: Schema, notes: Notes, place: str = "") -> Any:
    """A value as a schema wants it, as far as it can mean one thing only; each change is noted.

    Args:
        value: what was said.
        schema: without references, as `small_schema` gives it.
        notes: gets a sentence for each thing put right.
        place: where the value stands, for the notes.
    """
    if options := schema.get("anyOf"):
        fitting = [option for option in options if _KINDS.get(option.get("type", ""), lambda _v: True)(value)]
        return fitted(value, (fitting or options)[0], notes, place)
    if "enum" in schema:
        return _of_enum(value, schema["enum"], notes, place)
    kind = schema.get("type", "")
    if kind in ("object", "array", "integer", "number", "boolean") and isinstance(value, str):
        value = _spelt(value, kind, notes, place)
    if kind == "object" and "properties" in schema:
        return _object(value, schema, notes, place)
    if kind == "array":
        if not isinstance(value, list):
            notes.append(f"{place or 'the answer'}: one value was taken as a list of one")
            value = [value]
        inner = schema.get("items", {})
        return [fitted(item, inner, notes, f"{place}[{number}]") for number, item in enumerate(value, 1)]
    if kind == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
        notes.append(f"{place}: a number was taken as text")
        return str(value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}


def _of_enum(value: Any, allowed: list[Any], notes: Notes, place: str) -> Any:
    folded = str(value).strip().casefold()
    meant = [each for each in allowed if str(each).casefold() == folded]
    if value not in allowed and len(meant) == 1:
        notes.append(f"{place}: {clean_line(str(value), limit=40)!r} was taken as {meant[0]!r}")
        return meant[0]
    return value


def _spelt(text: str, kind: str, notes: Notes, place: str) -> Any:
    """A value of a kind that a text spells; the text where it spells none."""
    try:
        value = read_json(text.strip().casefold() if kind == "boolean" else text.strip())
    except StrictJsonError:
        return text
    if not _KINDS[kind](value):
        return text
    notes.append(f"{place}: text was taken as the {kind} that it spells")
    return value


def _object(value: Any, schema: Schema, notes: Notes, place: str) -> Any:
    properties: Schema = schema["properties"]
    where = place or "the answer"
    lists = [name for name, inner in properties.items() if inner.get("type") == "array"]
    # `required` names no other than the list.
    lone = lists[0] if lists and set(schema.get("required", ())) <= {lists[0]} else ""
    if isinstance(value, list) and lone:
        notes.append(f"{where}: a bare list was taken as `{lone}`")
        value = {lone: value}
    elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        notes.append(f"{where}: a list of one was taken as the object in it")
        value = value[0]
    if not isinstance(value, dict):
        return value
    if not set(value) & set(properties):
        if inner := next(_inside(value, properties), None):
            notes.append(f"{where}: the object inside `{clean_line(inner[0], limit=40)}` was taken")
            value = inner[1]
        elif lone and value and properties[lone].get("items", {}).get("type", "object") == "object":
            notes.append(f"{where}: one object was taken as a list of one, `{lone}`")
            value = {lone: [value]}
    out = {}
    required = schema.get("required", ())
    for name, item in value.items():
        if name not in properties and schema.get("additionalProperties") is False:
            notes.append(f"{where}: `{clean_line(name, limit=40)}` was left out")
        elif item is None and name not in required:
            notes.append(f"{where}: `{clean_line(name, limit=40)}` is null and was left out")
        else:
            inner = properties.get(name, {})
            out[name] = fitted(item, inner, notes, f"{place}.{name}" if place else name)
    return out


def _inside(value: Schema, properties: Schema) -> Iterator[tuple[str, Any]]:
    """Objects in an object that have keys of a form; `{"type": …, "properties": {…}}` repeats its schema."""
    for name, item in value.items():
        if isinstance(item, str) and name in ("arguments", "input"):
            try:
                item = read_json(item)
            except StrictJsonError:
                continue
        if isinstance(item, dict) and set(item) & set(properties):
            yield name, item
