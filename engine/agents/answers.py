"""Structure out of what a model answered (ontology spec §1.5).

In this order: what was given to the tool `return_result`; the last fenced block of JSON that fits;
bullets under
headings that say findings, recommendations or open questions. What remains is the output. Nothing is
invented: what was not said is empty, and a confidence that nobody told is 0.0 with source none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from engine.agents.kinds import ConfidenceSource
from engine.agents.spec import AgentSpec
from engine.agents.values import InvalidError, Share, Value, Words
from engine.domain.strict_json import StrictJsonError, read_json


class Returned(Value):
    """What an agent fills in of its result."""

    output: Words = ""
    """The answer in full, in the form that was asked for."""
    key_findings: tuple[str, ...] = Field(default=(), max_length=50)
    """What was found, a sentence each; empty when nothing was."""
    recommendations: tuple[str, ...] = Field(default=(), max_length=50)
    """What follows from it; empty when nothing does."""
    confidence: Share | None = None
    """How sure the answer is, from 0 to 1; leave it out rather than guess."""
    scores: dict[str, float] = Field(default_factory=dict)
    """Numbers by name, where the method gives any."""
    suggested_next_agents: tuple[str, ...] = Field(default=(), max_length=10)
    """Ids of agents that might go on from here."""
    open_questions: tuple[str, ...] = Field(default=(), max_length=50)
    """What is not known yet."""
    data: dict[str, Any] = Field(default_factory=dict)
    """The structured answer by field, where the method asks for one."""

    @property
    def confidence_source(self) -> ConfidenceSource:
        """Who said how sure it is."""
        return ConfidenceSource.NONE if self.confidence is None else ConfidenceSource.AGENT


def schema_for(spec: AgentSpec) -> dict[str, Any]:
    """The JSON Schema of `return_result` for an agent: what its spec does not return is left out."""
    schema = Returned.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    said = spec.handoff.returns
    wanted = {
        "key_findings": said.key_findings,
        "recommendations": said.recommendations,
        "confidence": said.confidence_score,
        "suggested_next_agents": said.suggested_next,
        "open_questions": said.open_questions,
    }
    for name, keep in wanted.items():
        if not keep:
            schema["properties"].pop(name)
    if said.score_names:
        numbers = {name: {"type": "number"} for name in said.score_names}
        schema["properties"]["scores"] = {"type": "object", "properties": numbers, "required": list(numbers)}
    schema["required"] = ["output"]
    return schema


def read_returned(given: Mapping[str, Any]) -> Returned:
    """What was given to `return_result`.

    Raises:
        InvalidError: it does not fit; every field that is wrong is named.
    """
    return Returned.read(given, "return_result")


_FENCED = re.compile(r"^```(?:json)?[ \t]*\n(.*?)^```[ \t]*$", re.M | re.S | re.I)


def read_text(text: str) -> Returned:
    """What a text without a call says."""
    for block in reversed(list(_FENCED.finditer(text))):
        try:
            given = read_json(block.group(1))
            if isinstance(given, dict) and set(given) & set(Returned.model_fields):
                rest = (text[: block.start()] + text[block.end() :]).strip()
                return Returned.read({"output": rest or text.strip(), **given})
        except (StrictJsonError, InvalidError, ValidationError):
            continue
    return _from_headings(text)


_HEADING = re.compile(r"^(?:#{1,6}\s+(.+?)|\*\*(.+?)\*\*:?)\s*$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.+?)\s*$")
_MEANS = {
    "key_findings": re.compile(r"\bfindings?\b", re.I),
    "recommendations": re.compile(r"\brecommend(ed|ation)?s?\b|\bnext steps\b", re.I),
    "open_questions": re.compile(r"\bopen questions?\b", re.I),
}


def _from_headings(text: str) -> Returned:
    found: dict[str, list[str]] = {name: [] for name in _MEANS}
    under = ""
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            title = heading.group(1) or heading.group(2)
            under = next((name for name, means in _MEANS.items() if means.search(title)), "")
        elif under and (bullet := _BULLET.match(line)) and len(found[under]) < 50:
            found[under].append(bullet.group(1))
    return Returned(output=text.strip(), **{name: tuple(lines) for name, lines in found.items()})
