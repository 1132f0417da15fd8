"""A model that is none: it fills in the form of the tool that ends a step, to prove that an agent answers.

What it says is marked as scripted and stands in handoffs that are marked as proofs; nobody is told that it
was thought. Source: ontology spec §2.8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from engine.models import Capabilities, ModelAnswer, ModelRequest, PieceSink, Recorder, TokenCount
from engine.models.answer import StopReason
from engine.models.blocks import ToolUse
from engine.models.port import unrecorded, unwatched

NAME = "scripted"
WORDS = "A scripted answer, to prove that the agent answers."
QUESTION = "This is scripted: who has the problem?"
ENDS = ("return_result", "checkpoint", "reply", "draft")
"""Tools that end what a step is about, the first that is offered is called."""
DEEPEST = 12


class ScriptedModel:
    """Answers every request by the first of `ENDS` that is offered."""

    def capabilities(self, model: str) -> Capabilities:
        """See `ModelClient`."""
        return Capabilities(model or NAME, tools=True, refuses=frozenset(), known=True, source=NAME)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """See `ModelClient`."""
        return TokenCount(0, estimated=True, why="nothing is sent")

    async def send(
        self,
        request: ModelRequest,
        *,
        sink: PieceSink = unwatched,
        record: Recorder = unrecorded,
        cut: asyncio.Event | None = None,
    ) -> ModelAnswer:
        """See `ModelClient`."""
        offered = {tool.name: tool for tool in request.tools}
        name = next((one for one in ENDS if one in offered), next(iter(offered), ""))
        given = {"text": QUESTION} if name == "reply" else filled(offered[name].input_schema) if name else {}
        use = ToolUse("scripted-1", name, given)
        answer = ModelAnswer((use,), StopReason.TOOL_USE, model=NAME)
        record(request, answer)
        return answer


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
