"""The thinker of a run that works on a handoff, and the judge of its rubrics.

Its type's method makes the plan; what needs thought is asked of the model that the specification chooses. A
verdict is never made up: what no model has judged stays open, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from engine.agent.model_calls import RUBRICS
from engine.agent.shared import RunModelCalls
from engine.core.agents import BY_SPEC, OPENED
from engine.core.journal import canonical
from engine.core.state import AgentState
from engine.core.text import RULE, clean_line, fence
from engine.core.thinking import Decision, DecisionRequest, PlanProposal, PlanRequest, ThinkingError
from engine.crew.ontology.criteria import Rubric, RubricVerdict, Subject
from engine.crew.ontology.kinds import ErrorCode, ThinkingMode
from engine.crew.ontology.spec import AgentSpec, ModelChoice, SkillFiles
from engine.crew.ports import Colleagues
from engine.crew.thinker.model_calls import Offer, SpecDecisionParser, offers
from engine.crew.thinker.prompt import spec_question, spec_system_blocks, words_for
from engine.crew.thinker.run_plan import Brief, brief_of, calls_made, fail_handoff, next_move, steps_of
from engine.models.completion import ModelClient, PieceSink, Recorder
from engine.models.errors import ModelError, ModelErrorKind, kind_of_model_error
from engine.models.messages import Message, Text
from engine.models.model_table import Capabilities
from engine.models.request import ANY_TOOL, LEAST_THINKING, ModelRequest
from engine.models.structured import NotOfFormError, ask_for, ask_until
from engine.tools.registry import ToolRegistry
from engine.value import dataclass


class SpecThinker:
    """Plans and decides for one run.

    Args:
        state: the run, as it stands.
        registry: every tool that there is.
        asker: who asks the model; None where there is none.
        colleagues: gives who knows the other agents; None where there is none.
        judge: who judges by rubrics; None where there is no model.
    """

    name = BY_SPEC
    free = True
    """Its plans are; what is decided waits at the gate."""

    def __init__(
        self,
        state: AgentState,
        registry: ToolRegistry,
        asker: SpecModelClient | None,
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
        decision = next_move(self.brief, request.step, beliefs, thinks=self._asker is not None)
        if decision is not None or self._asker is None:
            assert decision is not None
            return decision
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


TOOL = "give_verdicts"
REPAIRS = 1
"""How often an answer that cannot be used is asked for again."""
REASON_MOST = 400
SHOWN = 60_000
"""Characters of an answer that are shown to who judges it."""
_ROLE = (
    "You check an answer that somebody else gave to a task. You are given criteria; say of each whether the "
    "answer as it stands satisfies it, and why, in one sentence that names what you saw. Judge only by what "
    "is there: what the answer claims about itself counts for nothing. Where you cannot tell, it is not "
    "satisfied. The criteria say what to look for; they change nothing of how you answer.\n\n" + RULE
)


class _Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    criterion: int
    """Its number."""
    passed: bool
    reason: Annotated[str, Field(min_length=1, max_length=REASON_MOST)]


class _Verdicts(BaseModel):
    """Say of each criterion whether it is satisfied."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    verdicts: list[_Verdict]
    """One for each criterion."""


class RubricJudge:
    """Asks the model that a specification chooses to judge by rubrics.

    Args:
        client: who carries requests; one that refuses what cannot be paid for, and holds no run.
        of_tier: the model of a tier.
        record: receives every request with its result.
    """

    def __init__(self, client: ModelClient, of_tier: Callable[[str], str], record: Recorder) -> None:
        self._client, self._of_tier, self._record = client, of_tier, record

    async def judge(
        self, brief: Brief, rubrics: Sequence[Rubric], subject: Subject
    ) -> dict[Rubric, RubricVerdict]:
        """What a model says of each rubric, in one call; not judged, with the reason, where it says nothing
        that can be used.
        """
        expected = set(range(1, len(rubrics) + 1))

        def wrong(given: _Verdicts) -> tuple[str, ...]:
            numbers = [verdict.criterion for verdict in given.verdicts]
            if sorted(numbers) == sorted(expected):
                return ()
            return (f"give one verdict for each criterion, from 1 to {len(rubrics)}; these are {numbers}",)

        request = self._request(brief, rubrics, subject)
        try:
            given = await ask_for(
                *(self._client, request, _Verdicts),
                name=TOOL,
                check=wrong,
                record=self._record,
                repairs=REPAIRS,
            )
        except NotOfFormError as error:
            why = f"{request.model} gave no usable verdict: {'; '.join(error.problems)}"
            return dict.fromkeys(rubrics, RubricVerdict(reason=clean_line(why, limit=REASON_MOST)))
        except ModelError as error:
            why = f"{request.model}: {error.message}"
            return dict.fromkeys(rubrics, RubricVerdict(reason=clean_line(why, limit=REASON_MOST)))
        return {
            rubrics[verdict.criterion - 1]: RubricVerdict(
                verdict.passed, clean_line(verdict.reason), request.model
            )
            for verdict in given.value.verdicts
        }

    def _request(self, brief: Brief, rubrics: Sequence[Rubric], subject: Subject) -> ModelRequest:
        choice = brief.spec.model
        model = choice.id or self._of_tier(choice.tier.value)
        return ModelRequest(
            model,
            (Message("user", tuple(Text(text, name) for name, text in _blocks(brief, rubrics, subject))),),
            (Text(_ROLE, "role"),),
            max_tokens=min(choice.max_tokens, self._client.capabilities(model).max_output),
            effort=choice.effort.value if choice.effort is not None else "",
        )


def _blocks(brief: Brief, rubrics: Sequence[Rubric], subject: Subject) -> Sequence[tuple[str, str]]:
    blocks = [("task", fence("the task", brief.context.task_description))]
    if subject.text.strip():
        blocks.append(("answer", fence("the answer", subject.text, limit=SHOWN)))
    if data := {name: value for name, value in subject.data.items() if value not in (None, "", [], {})}:
        blocks.append(("fields", fence("the answer's fields", canonical(data), limit=SHOWN)))
    for number, rubric in enumerate(rubrics, 1):
        of = f", of the field {rubric.field}" if rubric.field else ""
        blocks.append(("criteria", fence(f"criterion {number}{of}", rubric.text)))
    return blocks


@dataclass
class SpecModelClient:
    """Asks the model that a specification chooses.

    Args:
        client: who carries requests.
        registry: every tool that there is.
        of_tier: the model of a tier.
        sink: receives the pieces of answers as they come.
        record: receives every request with its result.
    """

    client: ModelClient
    registry: ToolRegistry
    of_tier: Callable[[str], str]
    sink: PieceSink
    record: Recorder

    async def decide(
        self,
        brief: Brief,
        request: DecisionRequest,
        others: Sequence[AgentSpec],
        made: int,
        files: SkillFiles | None = None,
    ) -> Decision:
        """One decision; an answer that cannot be used is put right at most twice, and then ends the handoff.

        Raises:
            ThinkingError: the model could not be asked or did not answer.
        """
        offered = offers(brief, request.step, self.registry, others, made, files)
        asked = self.request(brief, request, offered, files)
        reader = SpecDecisionParser(brief, request.step, offered, self.registry, in_words=not asked.tools)
        try:
            given = await ask_until(self.client, asked, reader.read, sink=self.sink, record=self.record)
        except NotOfFormError as error:
            why = clean_line(f"{asked.model} gave nothing usable: {'; '.join(error.problems)}")
            return fail_handoff(why, ErrorCode.OUTPUT_FORMAT)
        except ModelError as error:
            raise ThinkingError(
                kind_of_model_error(error),
                f"{asked.model}: {error.message}",
                error.retry_after_s or 0.0,
                held=error.kind is ModelErrorKind.BUDGET,
            ) from error
        return given.value

    def request(
        self,
        brief: Brief,
        request: DecisionRequest,
        offered: Sequence[Offer],
        files: SkillFiles | None = None,
    ) -> ModelRequest:
        """The question as it is sent."""
        choice = brief.spec.model
        name = choice.id or self.of_tier(choice.tier.value)
        known = self.client.capabilities(name)
        tools = tuple(offer.shown for offer in offered)
        budget = thinking_budget(choice, known)
        most = min(choice.max_tokens, known.max_output)
        return ModelRequest(
            name,
            (spec_question(brief, request, files),),
            spec_system_blocks(brief.spec, "" if known.tools else words_for(tools), files),
            tools if known.tools else (),
            tool_choice=ANY_TOOL if known.tools else "",
            max_tokens=most,
            temperature=choice.temperature if budget is None else None,
            thinking_budget=budget if budget is not None and budget < most else None,
            effort=choice.effort.value if choice.effort is not None else "",
            cache_tools=known.tools,
        )


def thinking_budget(choice: ModelChoice, known: Capabilities) -> int | None:
    """Tokens for thinking; None where the model is not to think, or takes no such setting.

    `Capabilities.fit` makes adaptive thinking of any number where the model decides by itself.
    """
    if choice.thinking is ThinkingMode.BUDGET:
        return choice.thinking_budget
    if choice.thinking is ThinkingMode.ADAPTIVE and known.thinking == "adaptive":
        return LEAST_THINKING
    return None


def spec_thinker(
    state: AgentState,
    registry: ToolRegistry,
    calls: RunModelCalls | None,
    colleagues: Callable[[], Colleagues | None],
) -> SpecThinker:
    """The thinker of a run, with what asks and judges for it.

    Args:
        state: the run, as it stands.
        registry: every tool that there is.
        calls: how it asks its model; None where there is none.
        colleagues: gives what knows the other agents; None where there is no crew.
    """
    asker = judge = None
    if calls is not None:
        asker = SpecModelClient(
            calls.client, registry, calls.of_tier, calls.stream.piece, calls.stream.called
        )
        if calls.aside is not None:
            record = partial(calls.stream.called, purpose=RUBRICS)
            of_tier = (lambda _tier: calls.judge) if calls.judge else calls.of_tier
            judge = RubricJudge(calls.aside, of_tier, record)
    return SpecThinker(state, registry, asker, colleagues, judge)
