"""A checker for the part of JSON Schema that our schemas use; a keyword it does not know is an error."""

from __future__ import annotations

from typing import Any

SAID = {"title", "description", "default", "$defs", "discriminator"}
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> list[str]:
    """What is wrong with a value, each with its place."""
    found: list[str] = []
    for word, rule in schema.items():
        found += _check(word, rule, value, schema, root, at)
    return found


def _check(
    word: str, rule: Any, value: Any, schema: dict[str, Any], root: dict[str, Any], at: str
) -> list[str]:
    match word:
        case "$ref":
            return faults(value, root["$defs"][rule.removeprefix("#/$defs/")], root, at)
        case "type":
            wrong = not isinstance(value, TYPES[rule]) or (rule == "integer" and isinstance(value, bool))
            return [f"{at}: no {rule}"] if wrong else []
        case "const":
            return [] if value == rule else [f"{at}: not {rule!r}"]
        case "enum":
            return [] if value in rule else [f"{at}: none of {rule}"]
        case "minimum":
            return [] if value >= rule else [f"{at}: below {rule}"]
        case "anyOf" | "oneOf":
            fitting = sum(not faults(value, one, root, at) for one in rule)
            fits = fitting >= 1 if word == "anyOf" else fitting == 1
            return [] if fits else [f"{at}: fits {fitting} alternatives"]
        case "items":
            return [fault for n, one in enumerate(value) for fault in faults(one, rule, root, f"{at}[{n}]")]
        case "required":
            return [f"{at}: lacks {name}" for name in rule if name not in value]
        case "properties":
            return [
                fault
                for name, inner in rule.items()
                if isinstance(value, dict) and name in value
                for fault in faults(value[name], inner, root, f"{at}.{name}")
            ]
        case "additionalProperties":
            others = [name for name in value if name not in schema.get("properties", {})]
            if rule is False:
                return [f"{at}: {name} is unknown" for name in others]
            inner = rule if isinstance(rule, dict) else {}
            return [fault for one in others for fault in faults(value[one], inner, root, f"{at}.{one}")]
    assert word in SAID, f"unknown keyword {word}"
    return []
