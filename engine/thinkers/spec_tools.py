"""What a run's model may call: what its specification allows and what its method needs at this step.

Enumerations come from routing; a tool of which one would be empty is not offered (ontology spec §1.10).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.agents.answers import schema_for
from engine.agents.clarity import SLOTS
from engine.agents.computing import BUILD
from engine.agents.kinds import AgentType, RequestKind
from engine.agents.skill_files import OPENED_MOST, SkillFiles
from engine.agents.spec import AgentSpec, Phase
from engine.domain.plan import PlanStep
from engine.domain.running import CREW
from engine.mcp.global_actions import BUILT_INS, BuiltIn
from engine.mcp.names import resolve
from engine.models import ToolSpec
from engine.thinkers.brief import Brief
from engine.thinkers.spec_methods import CALLS_MOST, STEPS
from engine.tools.arguments import json_schema
from engine.tools.registry import ToolRegistry

CUSTOM = "custom"
"""The tool by which custom functions are called (`engine.mcp.custom`)."""
GIVE_UP = "give_up"
FORM = "form"
"""Where a handoff's metadata may have the JSON Schema of the data that is to come back."""
ESCALATE = "escalate_to_operator"
READ_SKILL = "read_skill"
RUN = "simple_coder.run"


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as a model is offered it, and the command that a call of it is."""

    shown: ToolSpec
    tool: str
    command: str
    built_in: BuiltIn | None = None
    """The global action whose one text becomes the command's arguments."""

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The command's arguments for what a model gave."""
        if self.built_in is None:
            return dict(given)
        return self.built_in.arguments(str(given.get("text", "")))


def offers(
    brief: Brief,
    step: PlanStep,
    registry: ToolRegistry,
    others: Sequence[AgentSpec],
    made: int,
    files: SkillFiles | None = None,
) -> tuple[Offer, ...]:
    """What may be called now.

    Args:
        brief: what the run was made for.
        step: the abstract step that is decided on.
        registry: every tool that there is.
        others: the agents that the run may delegate to.
        made: calls on the way that were made for the step so far.
        files: what came with its skill.
    """
    ends = tuple(_ends(brief, step, others))
    if made >= CALLS_MOST:
        return ends
    actions = (*_reading(files), *_actions(brief.spec, registry))
    if step.provenance.clause == STEPS:
        return (*actions, *ends)
    found = (*_outside(brief.spec, phase_of(brief, step), registry), *actions)
    return (*found, *_others(brief, others), *ends)


def _reading(files: SkillFiles | None) -> Iterator[Offer]:
    """Opening the files that came with the skill, in every phase and step."""
    closed = [path for path in files.sizes if path not in files.texts] if files is not None else []
    if closed and files is not None and len(files.texts) < OPENED_MOST:
        said = "Open one of the files that came with your instructions: you are then told what it says."
        yield _crew(READ_SKILL, said, {"path": {"type": "string"}}, "path")


def phase_of(brief: Brief, step: PlanStep) -> Phase | None:
    """The phase that an abstract step is about."""
    about = step.provenance.clause
    return next((phase for phase in brief.spec.phases if phase.id == about), None)


def _outside(spec: AgentSpec, phase: Phase | None, registry: ToolRegistry) -> Iterator[Offer]:
    """Commands of the engine's tools, of servers and of functions."""
    seen = set()
    for name in dict.fromkeys((*_named(spec), *(phase.tools if phase is not None else ()))):
        for tool, command in _meant(name, registry):
            found = registry.get(tool).commands[command]
            if not found.operator_only and (tool, command) not in seen:
                seen.add((tool, command))
                shown = ToolSpec(f"{tool}__{command}"[:64], found.description, json_schema(found))
                yield Offer(shown, tool, command)


def _meant(name: str, registry: ToolRegistry) -> Iterator[tuple[str, str]]:
    """The commands that are there of a name as `simple_coder.run git` or `server.*`, in any spelling."""
    said = name.partition(" ")[0]
    tool, _, command = said.partition(".")
    if tool in registry and tool != CREW and command in ("", "*"):
        yield from ((tool, one) for one in registry.get(tool).commands)
        return
    there = {one.id: one.commands for one in registry if one.id != CREW}
    if (found := resolve(said, there)) is not None:
        yield found


def _named(spec: AgentSpec) -> Iterator[str]:
    yield from spec.tools.local
    for use in spec.tools.mcp_servers:
        yield from (f"{use.server}.{tool}" for tool in use.tools)
    yield from (f"{CUSTOM}.{one.name}" for one in spec.tools.custom_tools)


def _actions(spec: AgentSpec, registry: ToolRegistry) -> Iterator[Offer]:
    """Global actions, by their own names, in every phase and step (ontology spec §1.14)."""
    customs = {one.name for one in spec.tools.custom_tools}
    for one in spec.tools.global_actions:
        name = f"{CUSTOM}.{one.tool}" if one.tool in customs else one.tool
        found = next(_meant(name, registry), None) if name else None
        built_in = BUILT_INS.get(one.action)
        if found is not None:
            command = registry.get(found[0]).commands[found[1]]
            shown = ToolSpec(one.action, one.description or command.description, json_schema(command))
            yield Offer(shown, *found)
        elif built_in is not None and built_in.tool in registry:
            schema = {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": False,
            }
            shown = ToolSpec(one.action, one.description or built_in.description, schema)
            yield Offer(shown, built_in.tool, built_in.command, built_in)


def _others(brief: Brief, others: Sequence[AgentSpec]) -> Iterator[Offer]:
    """Handing work on, asking the operator, counting."""
    if others:
        listed = "; ".join(f"{one.id}: {one.description[:120]}" for one in others)
        yield _crew(
            "delegate",
            f"Hand work to another agent and wait for what comes back. Agents: {listed}",
            {
                "to": {"type": "string", "enum": [one.id for one in others]},
                "task": {"type": "string", "description": "all that it needs to know; it sees nothing else"},
                "expected": {"type": "string"},
                "focus": _strings(),
                "ignore": _strings(),
            },
            "to",
            "task",
        )
    if brief.spec.handoff.supports.escalate:
        kinds = [kind.value for kind in RequestKind if kind not in _NOT_ASKED]
        yield _crew(
            "escalate",
            "Ask the operator what only a person can know or decide, and wait.",
            {
                "question": {"type": "string"},
                "kind": {"type": "string", "enum": kinds},
                "options": _strings(),
                "context": {"type": "string", "description": "what was tried"},
            },
            "question",
            name=ESCALATE,
        )
    if brief.spec.compute and brief.spec.compute != BUILD:
        yield _crew(
            "compute",
            f"Have sums and verdicts computed ({brief.spec.compute}); they count, not yours.",
            {"data": {"type": "object"}},
            "data",
        )
    if brief.spec.type is AgentType.ROLE:
        yield _crew(
            "update_clarity",
            "Note what the operator said about the problem; `confirmed` only where they said yes to it.",
            {
                "slot": {"type": "string", "enum": list(SLOTS)},
                "text": {"type": "string"},
                "score": {"type": "number", "minimum": 0, "maximum": 1},
                "confirmed": {"type": "boolean"},
            },
            "slot",
            "text",
            "score",
        )
        yield _crew(
            "park",
            "Put an idea of the operator's aside for later; it is listed for them.",
            {"idea": {"type": "string"}},
            "idea",
        )


_NOT_ASKED = (RequestKind.PERMISSION, RequestKind.TAKEOVER)


def _ends(brief: Brief, step: PlanStep, others: Sequence[AgentSpec]) -> Iterator[Offer]:
    """What ends the step."""
    phase = phase_of(brief, step)
    if step.provenance.clause == STEPS:
        yield _crew("ask", "Give the draft.", {"draft": {"type": "string"}}, "draft", name="draft")
        return
    if phase is not None:
        outputs: dict[str, Any] = {name: {} for name in phase.outputs}
        yield _crew(
            "checkpoint",
            "End the phase with its outputs. They are checked; what fails comes back to you.",
            {
                "output": {"type": "string", "description": "the phase's result in words"},
                "outputs": {"type": "object", "properties": outputs, "required": list(outputs)},
            },
            "outputs",
        )
    elif brief.talks:
        said = "Say something to the operator, in your words; their answer is what you hear next."
        yield _crew("reply", said, {"text": {"type": "string"}}, "text")
        floor = [one.id for one in others if one.handoff.supports.transfer]
        if floor:
            yield _crew(
                "transfer_to",
                "Give the floor to another agent: the operator then talks with that one.",
                {"agent": {"type": "string", "enum": floor}, "reason": {"type": "string"}},
                "agent",
                "reason",
            )
    else:
        about = "Return the result. Leave out what you do not know; nothing is to be made up."
        yield Offer(ToolSpec("return_result", about, _returned(brief)), CREW, "return_result")
    if not brief.talks:
        yield _crew(
            "return_result",
            "Say that it cannot be done, and why.",
            {"reason": {"type": "string"}},
            "reason",
            name=GIVE_UP,
        )


def _returned(brief: Brief) -> dict[str, Any]:
    """The form of a result; a caller may have said what the data in it are to be."""
    schema = {**schema_for(brief.spec), "additionalProperties": False}
    form = brief.context.metadata.get(FORM)
    if isinstance(form, dict):
        definitions = {name: one for name, one in form.items() if name == "$defs"}
        data = {name: one for name, one in form.items() if name != "$defs"}
        schema = {
            **schema,
            **definitions,
            "properties": {**schema["properties"], "data": data},
            "required": [*schema["required"], "data"],
        }
    return schema


def _crew(
    command: str, description: str, properties: dict[str, Any], *required: str, name: str = ""
) -> Offer:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return Offer(ToolSpec(name or command, description, schema), CREW, command)


def _strings() -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}}
