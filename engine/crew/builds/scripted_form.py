"""The smallest value that a JSON Schema asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS = "A scripted answer, to prove that the agent answers."
DEEPEST = 12


def filled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest object that a JSON Schema asks for."""
    found = _value(schema, schema, 0)
    return found if isinstance(found, dict) else {}


def _value(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    while "$ref" in schema:
        schema = root.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2], {})
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several) and depth < DEEPEST:
            return _value(schema[several][0], root, depth + 1)
    match schema.get("type", "object" if "properties" in schema else ""):
        case "object":
            wanted = schema.get("required", ()) if depth < DEEPEST else ()
            known = schema.get("properties", {})
            return {name: _value(known.get(name, {}), root, depth + 1) for name in wanted}
        case "array":
            return [_value(schema.get("items", {}), root, depth + 1)] * int(schema.get("minItems", 0))
        case "number" | "integer":
            return schema.get("minimum", 0)
        case "boolean":
            return True
        case "null":
            return None
    return WORDS[: int(schema.get("maxLength", len(WORDS)))]
