"""Claude, or any model that speaks the Messages API, as the one who plans."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from engine.core.plan import Op, PlanStep, Uncovered
from engine.core.recovery import FailureKind
from engine.core.text import clean_line
from engine.core.thinking import (
    FAILED_PLANNING,
    Decision,
    DecisionRequest,
    PlanProposal,
    PlanRequest,
    ThinkingError,
)
from engine.models.choice import REPAIRS
from engine.models.completion import ModelClient, PieceSink, Recorder, ignore_call, ignore_piece
from engine.models.errors import ModelError, ModelErrorKind, kind_of_model_error
from engine.models.messages import Text
from engine.models.prompt_parts import Parts, built_in
from engine.models.request import ANY_TOOL, ModelRequest
from engine.models.structured import NotOfFormError, ask_for, ask_until
from engine.planning.plan_notation import PLAN_LIMIT, PlanSyntaxError, plan_from_json, problems_of
from engine.planning.thinkers import CLAUDE
from engine.planning.thinkers.claude_decision import Action, DecisionReader, tools_in_words, tools_of
from engine.planning.thinkers.claude_prompt import decider_blocks, question, situation, system_blocks
from engine.tools.registry import ToolRegistry
from engine.value import dataclass

TOOL = "propose_plan"
"""The tool by which a model gives its plan."""
MAX_TOKENS = 8_192
"""Longest answer, thinking included."""
Recall: TypeAlias = Callable[[], Awaitable[tuple[Text, ...]]]
"""Gives what memory has as blocks for the next prompt."""


async def no_memory() -> tuple[Text, ...]:
    """There is no memory."""
    return ()


class _Gap(BaseModel):
    """A part of the goal that no plan is given for."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    clause: str = Field(min_length=1, max_length=8_000)
    """The words of the goal as they stand there."""
    why: str = Field(min_length=1, max_length=1_000)
    """What is missing, in a sentence."""


class _PlanForm(BaseModel):
    """Give the plan for the goal, and what of the goal it does not cover."""

    model_config = ConfigDict(extra="forbid")

    # What an action must be is judged by the notation alone, whose words the model then gets to read.
    plan: list[Action] = Field(default_factory=list, max_length=PLAN_LIMIT)
    uncovered: list[_Gap] = Field(default_factory=list, max_length=100)


@dataclass
class ClaudeThinker:
    """Asks a model for a plan in JSON, checks it, and has it put right a few times at most.

    One thinker belongs to one agent; the client may be shared. Cancelling the task that plans cuts the
    stream off; the partial answer is recorded.

    Args:
        client: who carries requests to the model.
        registry: the tools that a plan may use.
        model: the model's name, as its endpoint knows it.
        sink: receives the pieces of answers as they come.
        record: receives every request with its result.
        recall: what memory has to say before a question.
        parts: reads the workspace's parts of the prompt.
        repairs: how often an answer that cannot be used may be put right.
    """

    name = CLAUDE
    free = False

    client: ModelClient
    registry: ToolRegistry
    model: str
    sink: PieceSink = ignore_piece
    record: Recorder = ignore_call
    recall: Recall = no_memory
    parts: Callable[[], Awaitable[Parts]] = built_in
    repairs: int = REPAIRS

    @property
    def label(self) -> str:
        """Thinker and model, as plans and steps name them: `claude:claude-opus-5-5`."""
        return f"{self.name}:{self.model}"

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """Propose steps for a goal; what cannot be planned is uncovered.

        Raises:
            ThinkingError: the model could not be asked, did not answer, or gave no usable plan.
        """
        try:
            given = await ask_for(
                self.client,
                self.request(request, await self.recall(), await self.parts()),
                _PlanForm,
                name=TOOL,
                check=self._problems,
                sink=self.sink,
                record=self.record,
                repairs=self.repairs,
            )
        except NotOfFormError as error:
            raise self._unusable("plan", error) from error
        except ModelError as error:
            raise self._failed(error) from error
        gaps = tuple(
            Uncovered(clean_line(gap.clause), number, clean_line(gap.why))
            for number, gap in enumerate(given.value.uncovered, 1)
        )
        return PlanProposal(self._steps(given.value), gaps, self.label)

    async def decide(self, request: DecisionRequest) -> Decision:
        """One decision; an answer that decides nothing that can be done may be put right.

        Raises:
            ThinkingError: the model could not be asked, did not answer, or gave no usable decision.
        """
        reader = DecisionReader(self.registry, request, self.label)
        try:
            given = await ask_until(
                self.client,
                self.decision(request, await self.recall(), await self.parts()),
                reader.read,
                sink=self.sink,
                record=self.record,
                repairs=self.repairs,
            )
        except NotOfFormError as error:
            raise self._unusable("decision", error) from error
        except ModelError as error:
            raise self._failed(error) from error
        return given.value

    def _unusable(self, what: str, error: NotOfFormError) -> ThinkingError:
        what_failed = f"{self.model} gave no usable {what}, {error.repairs} repairs included"
        why = clean_line(f"{FAILED_PLANNING}: {what_failed}: {'; '.join(error.problems)}")
        return ThinkingError(FailureKind.PLANNING_ERROR, why)

    def _failed(self, error: ModelError) -> ThinkingError:
        return ThinkingError(
            kind_of_model_error(error),
            f"{self.model}: {error.message}",
            error.retry_after_s or 0.0,
            held=error.kind is ModelErrorKind.BUDGET,
        )

    def decision(
        self, request: DecisionRequest, recalled: tuple[Text, ...] = (), parts: Parts | None = None
    ) -> ModelRequest:
        """The first question for a decision, as it is sent."""
        known = self.client.capabilities(self.model).tools
        role = decider_blocks(parts or Parts())
        words = tools_in_words(self.registry, may_muse=request.may_muse)
        return ModelRequest(
            self.model,
            (situation(request, recalled),),
            role if known else (*role, Text(words, "tools")),
            tools_of(self.registry, may_muse=request.may_muse) if known else (),
            tool_choice=ANY_TOOL if known else "",
            max_tokens=MAX_TOKENS,
            temperature=0.0,
            cache_tools=known,
        )

    def request(
        self, request: PlanRequest, recalled: tuple[Text, ...] = (), parts: Parts | None = None
    ) -> ModelRequest:
        """The first question for a goal, as it is sent."""
        return ModelRequest(
            self.model,
            (question(request, recalled),),
            system_blocks(self.registry, parts or Parts()),
            max_tokens=MAX_TOKENS,
            temperature=0.0,
        )

    def _steps(self, form: _PlanForm) -> tuple[PlanStep, ...]:
        return plan_from_json(form.plan, by=self.label) if form.plan else ()

    def _problems(self, form: _PlanForm) -> tuple[str, ...]:
        if not form.plan:
            return () if form.uncovered else ("the plan is empty and nothing is said to be uncovered",)
        try:
            steps = self._steps(form)
        except PlanSyntaxError as error:
            return (str(error),)
        offered = {(entry["tool"], entry["command"]) for entry in self.registry.schemas()}
        return problems_of(steps, self.registry, settled_later=True) or tuple(
            f"step {number}: {step.tool} {step.command}: only the operator may do that"
            for number, step in enumerate(steps, 1)
            if step.op is Op.ACT and (step.tool, step.command) not in offered
        )
