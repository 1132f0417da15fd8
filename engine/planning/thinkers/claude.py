"""Claude, or any model that speaks the Messages API, as the one who plans."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

from pydantic import BaseModel, Field

from engine.core.goals import Goal
from engine.core.journal import canonical
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
from engine.models.lenient import Notes, Schema
from engine.models.messages import Text
from engine.models.model_table import Capabilities
from engine.models.prompt_parts import Parts, built_in
from engine.models.request import ANY_TOOL, ModelRequest
from engine.models.structured import LookUp, NotOfFormError, ask_for, ask_until
from engine.planning.plan_notation import PLAN_LIMIT, PlanSyntaxError, plan_from_json, problems_of
from engine.planning.thinkers import CLAUDE, claude_decision
from engine.planning.thinkers import claude_prompt as prompts
from engine.planning.thinkers.offered import (
    BASIC,
    ESSENTIAL,
    SIMPLE_CODER,
    Command,
    OfferedCommands,
    words_of,
)
from engine.planning.thinkers.plan_check import Files, plan_faults, unmentioned, without_repeats
from engine.planning.thinkers.procedural import ProceduralThinker, nearest_examples
from engine.tools.registry import ToolRegistry
from engine.value import dataclass

TOOL = "propose_plan"
"""The tool by which a model gives its plan."""
LONGEST_EXAMPLE = 200
"""Characters of a plan of the library that is shown as an example."""
MAX_TOKENS = 8_192
"""Longest answer, thinking included."""
Recall: TypeAlias = Callable[[], Awaitable[tuple[Text, ...]]]
"""Gives what memory has as blocks for the next prompt."""


async def no_memory() -> tuple[Text, ...]:
    """There is no memory."""
    return ()


async def no_files() -> Files | None:
    """Nothing is known of the files."""
    return None


class _Gap(BaseModel, extra="forbid", use_attribute_docstrings=True):
    """A part of the goal that no plan is given for."""

    clause: str = Field(min_length=1, max_length=8_000)
    """The words of the goal as they stand there."""
    why: str = Field(default="no reason was given", min_length=1, max_length=1_000)
    """What is missing, in a sentence."""


class _PlanForm(BaseModel, extra="forbid"):
    """Give the plan for the goal, and what of the goal it does not cover."""

    # What an action must be is judged by the notation alone, whose words the model then gets to read.
    plan: list[claude_decision.Action] = Field(default_factory=list, max_length=PLAN_LIMIT)
    uncovered: list[_Gap] = Field(default_factory=list, max_length=100)
    describe_tool: str = Field(default="", max_length=2_000)


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
        recipes: the plan library's own planner, for examples; with a small model it plans what it can.
        files: gives what is in the sandbox; None where that is not known.
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
    recipes: ProceduralThinker | None = None
    files: Callable[[], Awaitable[Files | None]] = no_files

    @property
    def label(self) -> str:
        """Thinker and model, as plans and steps name them: `claude:claude-opus-5-5`."""
        return f"{self.name}:{self.model}"

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """Propose steps for a goal; what cannot be planned is uncovered.

        Raises:
            ThinkingError: the model could not be asked, did not answer, or gave no usable plan.
        """
        first = await self._by_recipes(request)
        if first is not None and not first.uncovered:
            return first
        left = request if first is None else self._rest(request, first)
        proposal = await self._asked(left)
        if first is None:
            return proposal
        return _joined(first, proposal, self.label)

    async def _by_recipes(self, request: PlanRequest) -> PlanProposal | None:
        """What recipes cover of a goal; None where they are not to plan, or cover nothing.

        A strong model plans all by itself, and a plan that failed is not made the same way again.
        """
        if self.recipes is None or self._known.profile != "tiny" or request.trouble or request.done:
            return None
        proposal = _without_descriptions(await self.recipes.plan(request), request.goal.text)
        missing = sorted(gap.index for gap in proposal.uncovered)
        in_one = missing == list(range(missing[0], missing[0] + len(missing))) if missing else True
        ids = {step.id for step in proposal.steps}
        whole = all(ids.issuperset(step.depends_on) for step in proposal.steps)
        return proposal if proposal.steps and in_one and whole else None

    def _rest(self, request: PlanRequest, first: PlanProposal) -> PlanRequest:
        """The clauses that recipes left, with what the others do."""
        text = "; ".join(gap.clause for gap in sorted(first.uncovered, key=lambda gap: gap.index))
        others = (f"{step.tool} {step.command} {canonical(step.args)}" for step in first.steps)
        findings = (*request.findings, *(f"planned already: {other}" for other in others))
        return replace(request, goal=replace(request.goal, text=text), findings=findings)

    async def _asked(self, request: PlanRequest) -> PlanProposal:
        files = await self.files() if self._known.profile != "large" else None
        steps: tuple[PlanStep, ...] = ()
        put_right: Notes = []
        goal = request.goal.text

        def ready(value: Any, notes: Notes) -> Any:
            nonlocal put_right
            put_right = notes
            if not isinstance(value, dict):
                return value
            plan, gaps = value.get("plan", []), value.get("uncovered", [])
            gaps = _gaps(gaps, goal, bool(plan), notes)
            return {**value, "plan": self._offered.plan(plan, notes), "uncovered": gaps}

        def check(form: _PlanForm) -> tuple[str, ...]:
            nonlocal steps
            if form.describe_tool and not form.plan:
                raise LookUp(self._offered.described(form.describe_tool))
            if not form.plan:
                return () if form.uncovered else ("the plan is empty and nothing is said to be uncovered",)
            try:
                steps = plan_from_json(form.plan, by=self.label)
            except PlanSyntaxError as error:
                return (str(error),)
            problems = self._problems(steps)
            if problems or files is None:
                return problems
            steps = tuple(without_repeats(steps, request.session.cwd, files, put_right))
            faults = plan_faults(steps, self.registry, request.session.cwd, files)
            return (*unmentioned(goal, form.model_dump()), *faults)

        try:
            given = await ask_for(
                self.client,
                self.request(request, await self.recall(), await self.parts()),
                _PlanForm,
                name=TOOL,
                check=check,
                ready=ready,
                example=lambda: _written(prompts.EXAMPLES[nearest_examples(goal, prompts.EXAMPLES, 1)[0]]),
                narrow=lambda schema: self._narrowed(schema, goal),
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
        return PlanProposal(steps, gaps, self.label)

    def _narrowed(self, schema: Schema, goal: str) -> Schema:
        """The form of a plan with the commands that are listed, each with its own arguments."""
        steps = [command.called("command", "args") for command in self._listed(goal)]
        if not self._budget.short:
            think = {"think": {"type": "string"}}
            steps.append({"type": "object", "properties": think, "required": ["think"]})
        plan = {"type": "array", "items": {"anyOf": steps}, "maxItems": self._budget.steps}
        return {**schema, "properties": {**schema["properties"], "plan": plan}}

    def _listed(self, goal: str) -> tuple[Command, ...]:
        return self._offered.chosen(goal, self._budget.commands)

    def _examples(self, goal: str) -> tuple[str, ...]:
        """Goals that are like this one, each with its plan in JSON."""
        count = self._budget.examples
        known = self.recipes.examples(goal, count) if self.recipes is not None else ()
        plans = {
            text: _written((step.command, step.args) for step in steps)
            for text, steps in known
            if all(step.tool == SIMPLE_CODER for step in steps)
        }
        plans = {text: plan for text, plan in plans.items() if len(plan) <= LONGEST_EXAMPLE}
        plans |= {text: _written(steps) for text, steps in prompts.EXAMPLES.items()}
        return tuple(f"Goal: {text}\n{plans[text]}" for text in nearest_examples(goal, plans, count))

    @property
    def _known(self) -> Capabilities:
        return self.client.capabilities(self.model)

    @property
    def _budget(self) -> prompts.PromptBudget:
        return prompts.budget_for(self._known)

    @cached_property
    def _offered(self) -> OfferedCommands:
        return OfferedCommands(self.registry)

    async def decide(self, request: DecisionRequest) -> Decision:
        """One decision; an answer that decides nothing that can be done may be put right.

        Raises:
            ThinkingError: the model could not be asked, did not answer, or gave no usable decision.
        """
        reader = claude_decision.DecisionReader(self.registry, request, self.label, self._offered)
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
        known, budget = self._known, self._budget
        about = f"{request.goal.text} {request.step.description}"
        left, all_done = self._left(request)
        likely = [*(f"{each.tool}.{each.command}" for each in left), *ESSENTIAL]
        basic, most = budget.candidates > len(BASIC), budget.candidates
        if all_done and not basic:  # it may look once more whether all is there
            likely, most = [f"{SIMPLE_CODER}.{name}" for name in ("read", "ls")], 2
        commands = self._offered.chosen(about, most, basic=basic, first=() if basic else likely)
        more = len(commands) < len(self._offered.all) and not budget.short
        tools = claude_decision.tools_of(commands, may_muse=request.may_muse, more=more, short=budget.short)
        role = prompts.decider_blocks(budget, parts or Parts())
        by_tools = known.tools and not known.json_schema
        if not by_tools:
            role = (*role, Text(claude_decision.tools_in_words(commands, tools), "tools"))
        return ModelRequest(
            self.model,
            (prompts.situation(request, budget, recalled, all_done=all_done),),
            role,
            tools if by_tools else (),
            tool_choice=ANY_TOOL if by_tools else "",
            max_tokens=self._most,
            temperature=0.0,
            cache_tools=by_tools,
            json_schema=claude_decision.call_schema(commands, tools) if known.json_schema else None,
        )

    def _left(self, request: DecisionRequest) -> tuple[list[PlanStep], bool]:
        """What recipes have for the step and the goal and was not done; whether all for the goal was."""
        if self.recipes is None:
            return [], False
        done = [(each.tool, each.command, each.args) for each in request.recent if each.ok]
        goals = (Goal("", request.step.description), request.goal)
        now, whole = (self.recipes.propose(PlanRequest(goal)) for goal in goals)
        left = [each for each in whole.steps if (each.tool, each.command, each.args) not in done]
        return [*now.steps, *left], bool(whole.steps) and not (whole.uncovered or left)

    @property
    def _most(self) -> int:
        """Longest answer for which there is room beside the prompt."""
        return min(MAX_TOKENS, max(256, self._known.context_window // prompts.ANSWER_SHARE))

    def request(
        self, request: PlanRequest, recalled: tuple[Text, ...] = (), parts: Parts | None = None
    ) -> ModelRequest:
        """The first question for a goal, as it is sent."""
        budget, text = self._budget, request.goal.text
        commands = self._listed(text)
        more = len(commands) < len(self._offered.all)
        examples = self._examples(text)
        return ModelRequest(
            self.model,
            (prompts.question(request, budget, recalled, examples),),
            prompts.system_blocks(commands, budget, more=more, parts=parts or Parts()),
            max_tokens=self._most,
            temperature=0.0,
        )

    def _problems(self, steps: tuple[PlanStep, ...]) -> tuple[str, ...]:
        offered = {(each.tool, each.spec.name) for each in self._offered.all}
        return problems_of(steps, self.registry, settled_later=True) or tuple(
            f"step {number}: {step.tool} {step.command}: only the operator may do that"
            for number, step in enumerate(steps, 1)
            if step.op is Op.ACT and (step.tool, step.command) not in offered
        )


def _written(steps: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """Calls of the sandbox as a model writes a plan."""
    plan = [{"command": f"{SIMPLE_CODER}.{command}", "args": args} for command, args in steps]
    return json.dumps({"plan": plan}, ensure_ascii=False)


def _gaps(gaps: Any, goal: str, planned: bool, notes: Notes) -> Any:
    """What is uncovered, without what is no part of the goal, or is all of it beside a plan."""
    if not isinstance(gaps, list):
        return gaps
    kept, whole = [], set(words_of(goal))
    for gap in ({"clause": gap} if isinstance(gap, str) else gap for gap in gaps):
        if isinstance(gap, dict):
            gap = {name: value for name, value in gap.items() if value}
            clause = str(gap.get("clause"))
            words = set(words_of(clause))
            if not words & whole or (planned and words >= whole):
                notes.append(f"uncovered: {clean_line(clause, limit=60)!r} was left out")
                continue
        kept.append(gap)
    return kept


def _without_descriptions(proposal: PlanProposal, goal: str) -> PlanProposal:
    """A proposal of recipes without clauses that may only describe what is to be written.

    In `write a greeting to a.txt` the words are no text for the file; between quotation marks they are.
    """
    loose = {
        step.provenance.clause_index: step.provenance.clause
        for step in proposal.steps
        if step.command in ("write", "append") and not _is_quoted(str(step.args.get("content", "")), goal)
    }
    steps = tuple(step for step in proposal.steps if step.provenance.clause_index not in loose)
    described = (Uncovered(clause, index, "it may describe a text") for index, clause in loose.items())
    return replace(proposal, steps=steps, uncovered=(*proposal.uncovered, *described))


def _is_quoted(text: str, goal: str) -> bool:
    return not text.strip() or any(f"{mark}{text.strip()}" in goal for mark in "'\"`‘“")


def _joined(first: PlanProposal, then: PlanProposal, label: str) -> PlanProposal:
    """The steps of recipes with those of a model where the clauses stand that it was asked about."""
    at = min(gap.index for gap in first.uncovered)
    before = [step for step in first.steps if step.provenance.clause_index < at]
    numbers = {step.id: f"m{step.id}" for step in then.steps}
    asked = [
        replace(step, id=numbers[step.id], depends_on=tuple(numbers[each] for each in step.depends_on))
        for step in then.steps
    ]
    steps = (*before, *asked, *first.steps[len(before) :])
    return PlanProposal(steps, then.uncovered, label)
