"""The thinker of a run: its type's method makes the plan, and what needs thought is asked of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engine.agents.criteria import Subject
from engine.agents.rubrics import Rubric, RubricVerdict
from engine.domain.running import BY_SPEC, OPENED
from engine.domain.state import AgentState
from engine.domain.thinking import Decision, DecisionRequest, PlanProposal, PlanRequest
from engine.thinkers.brief import Brief, Colleagues, brief_of
from engine.thinkers.spec_methods import calls_made, move, steps_of
from engine.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from engine.thinkers.rubric_asking import RubricJudge
    from engine.thinkers.spec_asking import SpecAsker


class SpecThinker:
    """Plans and decides for one run.

    Args:
        state: the run, as it stands.
        registry: every tool that there is.
        asker: who asks the model; None where there is none.
        colleagues: gives who knows the other agents; None where nobody does.
        judge: who judges by rubrics; None where there is no model.
    """

    name = BY_SPEC
    free = True
    """Its plans are; what is decided waits at the gate."""

    def __init__(
        self,
        state: AgentState,
        registry: ToolRegistry,
        asker: SpecAsker | None,
        colleagues: Callable[[], Colleagues | None],
        judge: RubricJudge | None = None,
    ) -> None:
        self._state, self._registry = state, registry
        self._asker, self._colleagues, self._judge = asker, colleagues, judge
        self._read: Brief | None = None

    @property
    def brief(self) -> Brief:
        """What the run was made for; it does not change."""
        if self._read is None:
            self._read = brief_of(self._state.config.meta)
        return self._read

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """What is still to be done of the type's method."""
        return PlanProposal(steps_of(self.brief, self._state.belief_values()), thinker=self.name)

    async def decide(self, request: DecisionRequest) -> Decision:
        """What follows of itself, or what the model decides.

        Raises:
            ThinkingError: the model could not be asked, did not answer, or decided nothing that can be done.
        """
        beliefs = self._state.belief_values()
        found = move(self.brief, request.step, beliefs, thinks=self._asker is not None)
        if found is not None or self._asker is None:
            assert found is not None
            return found
        colleagues = self._colleagues()
        others = tuple(colleagues.callable_by(self._state.agent_id)) if colleagues is not None else ()
        opened = tuple(beliefs.get(OPENED) or ())
        files = await colleagues.skill_of(self._state.agent_id, opened) if colleagues is not None else None
        plan = self._state.plans.get(request.goal.id)
        made = calls_made(plan.steps, request.step) if plan is not None else 0
        return await self._asker.decide(self.brief, request, others, made, files)

    async def judged(self, rubrics: Sequence[Rubric], subject: Subject) -> dict[Rubric, RubricVerdict]:
        """What a model says of each rubric; not judged where there is none."""
        if self._judge is None:
            return dict.fromkeys(rubrics, RubricVerdict())
        return await self._judge.judge(self.brief, rubrics, subject)
