"""A model that is none: it answers a run by the run's own specification, to prove that the agent answers.

What it says is marked as scripted and stands in handoffs that are marked as proofs; nobody is told that it
was thought. It sees what a run's model would: the tools that are offered, and what the run was made for.
Source: ontology spec §2.8.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.agents.criteria import needs_log
from engine.agents.kinds import AgentType
from engine.agents.methods import judging, pipeline
from engine.agents.methods.debate import Debate
from engine.crew.builds.sampling import Sample, sample
from engine.crew.builds.scripted_form import WORDS, filled
from engine.crew.runs.worker import finds
from engine.domain.state import AgentState
from engine.models import Capabilities, ModelAnswer, ModelRequest, PieceSink, Recorder, TokenCount
from engine.models.answer import StopReason
from engine.models.blocks import ToolUse
from engine.models.port import unrecorded, unwatched
from engine.thinkers.brief import Brief, brief_of
from engine.thinkers.spec_methods import pipeline_of
from engine.thinkers.spec_tools import FORM

NAME = "scripted"
QUESTION = "This is scripted: who has the problem?"
LOOK = "simple_coder__ls"
"""What is called where an agent has to have found something: it changes nothing."""
ENDS = ("return_result", "checkpoint", "reply", "draft")
"""Tools that end what a step is about, the first that is offered is called."""


class ScriptedModel:
    """Answers every request of a run by the first of `ENDS` that is offered.

    Args:
        state: the run.
        debate: the debate that the run speaks in, as it stands; None where it speaks in none.
    """

    def __init__(self, state: AgentState, debate: Callable[[], Debate | None] = lambda: None) -> None:
        self._state, self._debate = state, debate

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
        offered = {tool.name: tool.input_schema for tool in request.tools}
        name = LOOK if LOOK in offered and self._has_to_look() else ""
        name = name or next((one for one in ENDS if one in offered), next(iter(offered), ""))
        given = self._given(name, offered[name]) if name else {}
        answer = ModelAnswer((ToolUse("scripted-1", name, given),), StopReason.TOOL_USE, model=NAME)
        record(request, answer)
        return answer

    def _has_to_look(self) -> bool:
        """Whether the phase under way wants what the run found, and it has found nothing yet."""
        brief = self._brief
        phase = pipeline.under_way(brief.spec.phases, pipeline_of(brief, self._state.belief_values()))
        return phase is not None and needs_log(phase.checkpoint.criteria) and not self._found

    @property
    def _brief(self) -> Brief:
        return brief_of(self._state.config.meta)

    @property
    def _found(self) -> list[str]:
        """Ids of what the run found."""
        return [one.action for one in self._state.recent if one.ok and finds(one.tool, one.command)]

    def _given(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        brief = self._brief
        if name == "reply":
            return {"text": QUESTION}
        if name == "checkpoint" and (found := phase_sample(brief, self._state.belief_values(), self._found)):
            return {"output": found.text, "outputs": found.data}
        if name != "return_result":
            return filled(schema)
        form = brief.context.metadata.get(FORM)
        if isinstance(form, Mapping):
            return filled(schema) | {"output": WORDS, "data": self._turn(brief) or filled(form)}
        found = result_sample(brief)
        return {**filled(schema), "output": found.text, "data": found.data}

    def _turn(self, brief: Brief) -> dict[str, Any]:
        """What a side, or the judge, says in a debate; empty outside of one."""
        said = brief.context.metadata.get("debate")
        if not isinstance(said, Mapping):
            return {}
        if "judge" in said:
            return {"winner": judging.SYNTHESIS, "confidence": 0.0}
        side, debate = str(said.get("side")), self._debate()
        if not said.get("round") or debate is None:
            return {"claims": [{"text": f"Side {side} says so, scripted."}]}
        others = [claim for claim in debate.standing() if claim.side != side]
        replies = [{"claim": one.id, "kind": "refute", "text": "Scripted."} for one in others[:1]]
        return {"restated": others[0].text if others else WORDS, "replies": replies}


def result_sample(brief: Brief) -> Sample:
    """A result by which a run ends well: it meets the criteria and names the views, where there are any."""
    spec = brief.spec
    return sample(
        spec.instructions.quality_criteria,
        formula=spec.compute,
        sources=sources_of(brief),
        mentions=[f"[{one.id}]" for one in spec.sub_agents] if spec.type is AgentType.COLLABORATIVE else (),
    )


def phase_sample(brief: Brief, beliefs: Mapping[str, Any], log: Sequence[str] = ()) -> Sample | None:
    """What the phase under way gives, so that its checkpoint is passed; None where none is."""
    phase = pipeline.under_way(brief.spec.phases, pipeline_of(brief, beliefs))
    if phase is None:
        return None
    return sample(phase.checkpoint.criteria, names=phase.outputs, sources=sources_of(brief), log=log)


def sources_of(brief: Brief) -> dict[str, str]:
    """What a script cites and quotes."""
    return {"task": brief.context.task_description}
