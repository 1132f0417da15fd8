"""What a run was made for: the specification and the handoff that stand in its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from engine.agents.context import HandoffContext
from engine.agents.kinds import HandoffType
from engine.agents.skill_files import SkillFiles
from engine.agents.spec import AgentSpec
from engine.agents.values import InvalidError, Value
from engine.domain.running import HANDOFF, PROGRESS, SPEC

V = TypeVar("V", bound=Value)


class Colleagues(Protocol):
    """Who knows the other agents."""

    def callable_by(self, run: str) -> Sequence[AgentSpec]:
        """The agents that a run may delegate to, now."""

    async def skill_of(self, run: str, opened: Sequence[str] = ()) -> SkillFiles | None:
        """The files that came with the skill of a run's agent; None where none did."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What counts for a run's whole life."""

    spec: AgentSpec
    context: HandoffContext
    progress: dict[str, Any] = field(default_factory=dict)
    """How far an earlier run of the handoff came, by the beliefs that it held."""

    @property
    def talks(self) -> bool:
        """Whether it was given the floor: it talks with the operator and returns nothing."""
        return self.context.handoff_type is HandoffType.TRANSFER

    def kept(self, beliefs: Mapping[str, Any], key: str) -> Any:
        """What is believed under a key, or was by the run before it."""
        return beliefs[key] if key in beliefs else self.progress.get(key)

    def read(self, beliefs: Mapping[str, Any], key: str, kind: type[V]) -> V | None:
        """The same as a value; None where nothing is kept.

        Raises:
            InvalidError: what is kept is no such value.
        """
        found = self.kept(beliefs, key)
        return None if found is None else kind.loaded(found)[0]


def brief_of(meta: Mapping[str, Any]) -> Brief:
    """The brief in an agent's configuration.

    Raises:
        InvalidError: it holds none, or a wrong one.
    """
    parts = {name: meta.get(name) for name in (SPEC, HANDOFF)}
    for name, part in parts.items():
        if not isinstance(part, Mapping):
            raise InvalidError(f"the configuration of a run: {name}: a JSON object is needed", ())
    progress = meta.get(PROGRESS)
    return Brief(
        AgentSpec.read(parts[SPEC] or {}, "agent spec"),
        HandoffContext.read(parts[HANDOFF] or {}, "handoff"),
        dict(progress) if isinstance(progress, Mapping) else {},
    )


def brief_problem(agent_type: str, meta: Mapping[str, Any]) -> str:
    """Why no run can be made of a configuration, in one line; empty when one can."""
    try:
        brief = brief_of(meta)
    except (InvalidError, ValidationError) as error:
        return " ".join(str(error).split())
    if brief.spec.type != agent_type:
        return f"the specification is that of a {brief.spec.type}, not of a {agent_type}"
    return ""


SOURCES = "sources"
"""Where a handoff's metadata may have texts that can be quoted, by name."""


def quotable(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The texts that a handoff's metadata has, by name."""
    held = metadata.get(SOURCES)
    return {str(name): str(text) for name, text in held.items()} if isinstance(held, Mapping) else {}


def carried(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What of a handoff's metadata its sub-agents are given, too: what they can quote."""
    found = quotable(metadata)
    return {SOURCES: found} if found else {}


def values_of(context: HandoffContext) -> dict[str, Any]:
    """What a phase may name of the context (`engine.agents.reading.FROM_CONTEXT`), by name."""
    said = context.model_dump(mode="json")
    clarity = context.problem_clarity
    return {
        "task": context.task_description,
        "what": clarity.what,
        "who": clarity.who,
        "success": clarity.success,
        "clarity": said["problem_clarity"],
        **{
            name: said[name]
            for name in (
                *("task_description", "expected_output", "conversation", "previous_analyses"),
                *("focus_areas", "ignore_areas", "session_id", "metadata"),
            )
        },
    }
