"""The brief of a run, and its type's method as a plan with the moves that need no model.

All of it follows from the run's brief (the specification and the handoff in its configuration) and its
beliefs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from engine.core.agents import (
    AWAY,
    BY_SPEC,
    CREW,
    GUIDED,
    HANDOFF,
    PIPELINE,
    PROGRESS,
    RETURNED,
    SPEC,
    VIEWS,
    WANTED,
)
from engine.core.goals import HANDOFF_IS
from engine.core.plan import Op, PlanStep, Provenance
from engine.core.reasons import read_reason
from engine.core.text import clean_line
from engine.core.thinking import Decision, DecisionKind
from engine.crew.methods import pipeline
from engine.crew.ontology.context import HandoffContext
from engine.crew.ontology.kinds import AgentType, ErrorCode, HandoffType, InvalidError, OntologyValue
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ontology.spec_parser import FROM_CONTEXT
from engine.value import dataclass, field

V = TypeVar("V", bound=OntologyValue)


@dataclass(frozen=True, slots=True)
class Brief:
    """What counts for a run's whole life."""

    spec: AgentSpec
    context: HandoffContext
    progress: dict[str, Any] = field(default_factory=dict)
    """How far an earlier run of the handoff came, by the beliefs that it held."""

    @property
    def has_floor(self) -> bool:
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
        kept = self.kept(beliefs, key)
        return None if kept is None else kind.loaded(kept)


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
    sources = quotable(metadata)
    return {SOURCES: sources} if sources else {}


def values_of(context: HandoffContext) -> dict[str, Any]:
    """What a phase may name of the context, by name."""
    fields = context.model_dump(mode="json")
    clarity = fields["problem_clarity"]
    fields |= {**clarity, "task": context.task_description, "clarity": clarity}
    return {name: fields[name] for name in FROM_CONTEXT}


TASK, SYNTHESIS, TALK, STEPS = "task", "synthesis", "talk", "steps"
"""What abstract steps are about, in their provenance; those of a pipeline have the id of their phase."""
GIVEN = "given"
"""Where a handoff's metadata may have an answer, or data of one, that is to be checked and counted."""
TERMINAL = ("return_result", "checkpoint", "reply", "transfer_to")
"""Commands that end what an abstract step is about; all others are calls on the way."""
_UNCOUNTED = (*TERMINAL, "read_skill")
"""A run may open as many files as it may have open, and does something with them afterwards."""
CALLS_MOST = 8
"""Calls on the way for one abstract step."""


def steps_of(brief: Brief, beliefs: Mapping[str, Any]) -> tuple[PlanStep, ...]:
    """The plan of a run: what is still to be done of its type's method."""
    return tuple(
        PlanStep(
            str(number),
            clean_line(what, limit=150),
            op=Op.THINK if about else Op.ACT,
            tool="" if about else CREW,
            command="" if about else command,
            depends_on=(str(number - 1),) if number > 1 else (),
            provenance=Provenance(BY_SPEC, recipe=f"{brief.spec.id} {brief.spec.version}", clause=about),
        )
        for number, (what, about, command) in enumerate(_lines(brief, beliefs), 1)
    )


def _lines(brief: Brief, beliefs: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each step: what it is, what an abstract one is about, the command of one that is not."""
    spec = brief.spec
    match spec.type:
        case AgentType.ROLE:
            yield "talk with the operator" if brief.has_floor else "do what is asked and return it", TALK, ""
        case AgentType.OPERATOR:
            yield "do the task and return the result", TASK, ""
        case AgentType.COLLABORATIVE if spec.debate is not None:
            yield "argue the motion from its sides and have it judged", "", "debate"
            yield "return the verdict", "", "return_result"
        case AgentType.COLLABORATIVE:
            if beliefs.get(VIEWS) is None:
                yield f"have {len(spec.sub_agents)} views, each without the others", "", "gather"
            yield "put the views together", SYNTHESIS, ""
        case AgentType.PIPELINE:
            for phase in spec.phases[len(pipeline_of(brief, beliefs).records) :]:
                yield f"{phase.name}: {phase.description or 'give its outputs'}", phase.id, ""
            yield "return what the phases gave", "", "return_result"
        case AgentType.GUIDED:
            yield "go through the steps with the operator", STEPS, ""


def pipeline_of(brief: Brief, beliefs: Mapping[str, Any]) -> pipeline.PipelineRun:
    """How far a pipeline is; what an earlier run of it committed counts where its hash still fits."""
    if PIPELINE in beliefs:
        return pipeline.PipelineRun.loaded(beliefs[PIPELINE])
    kept = brief.read(beliefs, PIPELINE, pipeline.PipelineRun)
    values = values_of(brief.context)
    return pipeline.resumed(brief.spec.phases, values, kept or pipeline.PipelineRun())


def next_move(brief: Brief, step: PlanStep, beliefs: Mapping[str, Any], *, thinks: bool) -> Decision | None:
    """What comes next where that needs no thought; None where a model is to decide.

    Args:
        brief: what the run was made for.
        step: the abstract step.
        beliefs: what the run believes.
        thinks: whether there is a model.
    """
    about, spec = step.provenance.clause, brief.spec
    if beliefs.get(RETURNED):
        return Decision(DecisionKind.FINISH, f"{HANDOFF_IS}{read_reason(beliefs[RETURNED])}")
    if spec.type is AgentType.PIPELINE and any(phase.id == about for phase in spec.phases):
        decision = _phase(brief, about, beliefs)
        if decision is not None:
            return decision
    if spec.type is AgentType.GUIDED:
        return _guided(beliefs, thinks=thinks)
    if beliefs.get(AWAY):
        return _call("reply", f"wait until {beliefs[AWAY]} gives the floor back", text="")
    return None if thinks else plan_without_model(brief)


def _phase(brief: Brief, about: str, beliefs: Mapping[str, Any]) -> Decision | None:
    run = pipeline_of(brief, beliefs)
    if any(record.phase == about for record in run.records):
        return Decision(DecisionKind.FINISH, f"{about} is committed")
    phase = next(phase for phase in brief.spec.phases if phase.id == about)
    if missing := pipeline.missing_inputs(phase, values_of(brief.context), run):
        are = "is" if len(missing) == 1 else "are"
        why = f"{phase.name} cannot begin: {', '.join(missing)} {are} missing"
        return fail_handoff(why, ErrorCode.CHECKPOINT)
    return None


def _guided(beliefs: Mapping[str, Any], *, thinks: bool) -> Decision | None:
    session = beliefs.get(GUIDED)
    if isinstance(session, Mapping) and session.get("finished"):
        return _call("return_result", "return the answers")
    if beliefs.get(WANTED):
        return None if thinks else _call("ask", "go on without a draft, as there is no model", draft="")
    return _call("ask", "ask the operator the next step")


def plan_without_model(brief: Brief) -> Decision:
    """The decision without a model: what was given is checked and counted; else it is said what needs
    a model.
    """
    metadata = brief.context.metadata
    if why := why_model(brief.spec, metadata):
        return fail_handoff(why, ErrorCode.NO_MODEL)
    return _call("return_result", "check and count what was given", **metadata[GIVEN], final=True)


def why_model(spec: AgentSpec, metadata: Mapping[str, Any]) -> str:
    """Why an agent needs a model for a task; empty where it does not."""
    given = isinstance(metadata.get(GIVEN), Mapping) and spec.type in (AgentType.OPERATOR, AgentType.ROLE)
    needs = "its turns are written by one" if spec.debate is not None else _NEEDS[spec.type]
    return "" if given else f"{spec.name} needs a model: {needs}"


_NEEDS = {
    AgentType.ROLE: "what it says is written by one",
    AgentType.OPERATOR: "its task is done by one; what is given by given= is checked without",
    AgentType.COLLABORATIVE: "its views are put together by one",
    AgentType.PIPELINE: "what its phases give is written by one",
    AgentType.GUIDED: "drafts are written by one",
}


def fail_handoff(why: str, code: ErrorCode) -> Decision:
    """End the handoff without a result."""
    return _call("return_result", why, error=why, code=code.value)


def _call(command: str, why: str, **args: Any) -> Decision:
    return Decision(DecisionKind.CALL, why, CREW, command, args)


def calls_made(steps: Sequence[PlanStep], step: PlanStep) -> int:
    """Calls on the way that were decided for an abstract step so far."""
    at = next((index for index, other in enumerate(steps) if other.id == step.id), len(steps))
    made = 0
    for other in reversed(steps[:at]):
        own = other.command if other.tool == CREW else ""
        if other.op is Op.THINK or (own == "reply" and other.status.terminal):
            break
        made += other.op is Op.ACT and own not in _UNCOUNTED
    return made
