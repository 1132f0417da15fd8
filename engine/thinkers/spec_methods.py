"""The methods of the types of agents as plans and moves that need no thought (ontology spec §1.12).

What is made here follows from a run's brief and what it believes, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.agents.computing import BUILD
from engine.agents.kinds import AgentType, ErrorCode
from engine.agents.methods import pipeline
from engine.domain.plan import Op, PlanStep, Provenance
from engine.domain.running import AWAY, BY_SPEC, CREW, GUIDED, PIPELINE, RETURNED, VIEWS, WANTED
from engine.domain.text import clean_line
from engine.domain.thinking import Decision, DecisionKind
from engine.thinkers.brief import Brief, values_of

TASK, SYNTHESIS, TALK, STEPS = "task", "synthesis", "talk", "steps"
"""What abstract steps are about, in their provenance; those of a pipeline have the id of their phase."""
GIVEN = "given"
"""Where a handoff's metadata may have an answer, or data of one, that is to be checked and counted."""
TERMINAL = ("return_result", "checkpoint", "reply", "transfer_to")
"""Commands that end what an abstract step is about; all others are calls on the way."""
_UNCOUNTED = (*TERMINAL, "read_skill")
"""A run may open as many files as it may have open, and does something with them afterwards."""
CALLS_MOST = 8
"""Calls on the way for one abstract step (ontology spec §1.12, operator)."""


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
            yield "talk with the operator" if brief.talks else "do what is asked and return it", TALK, ""
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
        return pipeline.PipelineRun.loaded(beliefs[PIPELINE])[0]
    kept = brief.read(beliefs, PIPELINE, pipeline.PipelineRun)
    values = values_of(brief.context)
    return pipeline.resumed(brief.spec.phases, values, kept or pipeline.PipelineRun())


def move(brief: Brief, step: PlanStep, beliefs: Mapping[str, Any], *, thinks: bool) -> Decision | None:
    """What comes next where that needs no thought; None where a model is to decide.

    Args:
        brief: what the run was made for.
        step: the abstract step.
        beliefs: what the run believes.
        thinks: whether there is a model.
    """
    about, spec = step.provenance.clause, brief.spec
    if beliefs.get(RETURNED):
        return Decision(DecisionKind.FINISH, f"its handoff is {beliefs[RETURNED]}")
    if spec.type is AgentType.PIPELINE and any(phase.id == about for phase in spec.phases):
        found = _phase(brief, about, beliefs)
        if found is not None:
            return found
    if spec.type is AgentType.GUIDED:
        return _guided(beliefs, thinks=thinks)
    if beliefs.get(AWAY):
        return _call("reply", f"wait until {beliefs[AWAY]} gives the floor back", text="")
    return None if thinks else without_model(brief)


def _phase(brief: Brief, about: str, beliefs: Mapping[str, Any]) -> Decision | None:
    run = pipeline_of(brief, beliefs)
    if any(record.phase == about for record in run.records):
        return Decision(DecisionKind.FINISH, f"{about} is committed")
    phase = next(one for one in brief.spec.phases if one.id == about)
    if missing := pipeline.missing_inputs(phase, values_of(brief.context), run):
        why = (
            f"{phase.name} cannot begin: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        )
        return failing(why, ErrorCode.CHECKPOINT)
    if brief.spec.compute == BUILD:
        return _call("checkpoint", f"{phase.name} is computed")
    return None


def _guided(beliefs: Mapping[str, Any], *, thinks: bool) -> Decision | None:
    session = beliefs.get(GUIDED)
    if isinstance(session, Mapping) and session.get("finished"):
        return _call("return_result", "return the answers")
    if beliefs.get(WANTED):
        return None if thinks else _call("ask", "go on without a draft, as there is no model", draft="")
    return _call("ask", "ask the operator the next step")


def without_model(brief: Brief) -> Decision:
    """What is done where nobody can think: what was given is checked and counted; else it is said what needs
    a model.
    """
    given = brief.context.metadata.get(GIVEN)
    if isinstance(given, Mapping) and brief.spec.type in (AgentType.OPERATOR, AgentType.ROLE):
        return _call("return_result", "check and count what was given", **given, final=True)
    return failing(f"{brief.spec.name} needs a model: {_NEEDS[brief.spec.type]}", ErrorCode.NO_MODEL)


_NEEDS = {
    AgentType.ROLE: "what it says is written by one",
    AgentType.OPERATOR: "its task is done by one; what is given as metadata.given is checked without",
    AgentType.COLLABORATIVE: "its views are put together by one",
    AgentType.PIPELINE: "what its phases give is written by one",
    AgentType.GUIDED: "drafts are written by one",
}


def failing(why: str, code: ErrorCode) -> Decision:
    """End the handoff without a result."""
    return _call("return_result", why, error=why, code=code.value)


def _call(command: str, why: str, **args: Any) -> Decision:
    return Decision(DecisionKind.CALL, why, CREW, command, args)


def calls_made(steps: Sequence[PlanStep], step: PlanStep) -> int:
    """Calls on the way that were decided for an abstract step so far."""
    at = next((index for index, one in enumerate(steps) if one.id == step.id), len(steps))
    made = 0
    for one in reversed(steps[:at]):
        if one.op is Op.THINK or (one.tool == CREW and one.command == "reply" and one.status.terminal):
            break
        made += one.op is Op.ACT and not (one.tool == CREW and one.command in _UNCOUNTED)
    return made
