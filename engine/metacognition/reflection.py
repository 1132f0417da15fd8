"""Looking back: what went how, in five kinds that take turns.

Without a model it is counted from the record, and says so. Source: spec master-loop-and-memory §1.8, §3.6.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from engine.domain.memory import ReflectionKind
from engine.memory import Memory
from engine.memory.upkeep import RecordReflection
from engine.metacognition.asking import Asking
from engine.metacognition.result import Result
from engine.metacognition.retrospect import Retrospect, computed, material
from engine.metacognition.work import Inputs
from engine.models import fence

FEEDBACK = 600
"""Characters of a computed reflection that the thinker is told."""
QUESTIONS = {
    ReflectionKind.SUMMARY: "Sum up what was done and what came of it.",
    ReflectionKind.PROGRESS: "How far is the goal, what is done of it, and what is not?",
    ReflectionKind.GAPS: "What is missing, what failed and why, and what is not known that should be?",
    ReflectionKind.STRENGTHS: "What worked well and should be done again?",
    ReflectionKind.PLAN: "Do the steps still to come lead to the goal? What should be done otherwise?",
}


class WrittenReflection(BaseModel):
    """What a look back at an agent's work finds."""

    model_config = ConfigDict(extra="forbid")
    findings: Annotated[str, Field(min_length=1, max_length=20_000)]
    """What was found, with what it is based on."""
    advice: Annotated[str, Field(max_length=2_000)] = ""
    """What the planner should know or do otherwise; empty when it should go on as it does."""
    plan_anew: bool = False
    """Whether the steps that are still to come should be planned anew."""


async def reflect(past: Retrospect, kind: ReflectionKind, asking: Asking | None) -> tuple[Result, str]:
    """A reflection, and its whole text.

    Raises:
        AskingError: the model could not be asked.
    """
    if asking is None:
        text = computed(past, kind)
        message = f"{kind}: {text.splitlines()[0]}"
        return Result(message, feedback=_head(text)), text
    said = await asking(
        "reflection", QUESTIONS[kind], fence("the agent's record", material(past)), WrittenReflection
    )
    assert isinstance(said, WrittenReflection)
    head = said.findings.strip().splitlines()[0]
    feedback = said.advice.strip() or _head(said.findings)
    return Result(f"{kind}: {head}", feedback, computed=False, replan=said.plan_anew), said.findings


async def remember(inputs: Inputs, memory: Memory, workflow: str, text: str, result: Result) -> str:
    """Keep a reflection in memory; its id.

    Raises:
        MemoryFault, JournalError: memory refused.
    """
    kind = ReflectionKind(inputs.job.kind)
    request = RecordReflection(
        workflow_id=workflow, content=text, reflection_type=kind, computed=result.computed
    )
    return (await memory.do(request, **inputs.how)).id


def _head(text: str) -> str:
    return text if len(text) <= FEEDBACK else f"{text[:FEEDBACK]}…"
