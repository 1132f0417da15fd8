"""What a run's model answered, as a decision (ontology spec §1.5).

A call is taken as it is; words without a call end the step: they are the result, the phase's output, or what
a role says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.agents.answers import Returned, read_returned, read_text
from engine.agents.kinds import AgentType, ErrorCode
from engine.agents.values import InvalidError
from engine.domain.plan import PlanStep, Provenance
from engine.domain.running import BY_SPEC, CREW
from engine.domain.strict_json import StrictJsonError
from engine.domain.text import clean_line
from engine.domain.thinking import Decision, DecisionKind
from engine.generation.validation import step_problems
from engine.models import ModelAnswer, ToolUse
from engine.models.structured import json_object_in
from engine.thinkers.brief import Brief
from engine.thinkers.spec_methods import STEPS, failing
from engine.thinkers.spec_tools import GIVE_UP, Offer, phase_of
from engine.tools.registry import ToolRegistry


class SpecReader:
    """Reads answers to one question.

    Args:
        brief: what the run was made for.
        step: the abstract step that is decided on.
        offered: what may be called.
        registry: every tool that there is.
        in_words: whether calls are JSON in words, for a model that knows no tools.
    """

    def __init__(
        self,
        brief: Brief,
        step: PlanStep,
        offered: Sequence[Offer],
        registry: ToolRegistry,
        *,
        in_words: bool = False,
    ) -> None:
        self._brief, self._step, self._registry = brief, step, registry
        self._in_words = in_words
        self._offered = {offer.shown.name: offer for offer in offered}

    def read(self, answer: ModelAnswer) -> tuple[Decision | None, tuple[str, ...]]:
        """The decision; None and what is wrong with the answer where there is none."""
        uses, text = answer.tool_uses, answer.text.strip()
        if not uses:
            return self._words(text)
        decision, problems = self._called(uses[0], text)
        if decision is None or len(uses) == 1:
            return decision, problems
        return replace(decision, deferred=tuple(clean_line(use.name, limit=80) for use in uses[1:])), ()

    def _words(self, text: str) -> tuple[Decision | None, tuple[str, ...]]:
        if not text:
            return None, ("the answer is empty",)
        if self._in_words and '"tool"' in text:
            try:
                given = json_object_in(text)
            except StrictJsonError as error:
                return None, (str(error),)
            if isinstance(given.get("input", {}), dict) and set(given) - {"input"} == {"tool"}:
                return self._called(ToolUse("", str(given["tool"]), given.get("input", {})), "")
        if self._step.provenance.clause == STEPS:
            return self._call("ask", {"draft": text})
        phase = phase_of(self._brief, self._step)
        if phase is not None:
            return self._call("checkpoint", {"output": text, "outputs": _outputs(phase.outputs, text)})
        if self._brief.talks:
            return self._call("reply", {"text": text})
        return self._call("return_result", _said(read_text(text)))

    def _called(self, use: ToolUse, why: str) -> tuple[Decision | None, tuple[str, ...]]:
        shown = clean_line(use.name, limit=80)
        if use.fault:
            return None, (f"the input of `{shown}` is no usable JSON: {use.fault}",)
        offer = self._offered.get(use.name)
        if offer is None:
            return None, (f"there is no tool {shown!r}; tools: {', '.join(self._offered)}",)
        if use.name == GIVE_UP:
            reason = clean_line(str(use.input.get("reason", "")), limit=2_000) or "no reason was given"
            return failing(f"given up: {reason}", ErrorCode.INTERNAL), ()
        if problems := tuple(_unfit(offer, use.input)):
            return None, tuple(f"{shown}: {one}" for one in problems)
        if (offer.tool, offer.command) == (CREW, "return_result"):
            try:
                return self._call("return_result", _said(read_returned(use.input)), why)
            except InvalidError as error:
                return None, tuple(map(str, error.problems))
        return self._checked(offer.tool, offer.command, offer.arguments(use.input), why)

    def _call(
        self, command: str, args: dict[str, Any], why: str = ""
    ) -> tuple[Decision | None, tuple[str, ...]]:
        return self._checked(CREW, command, args, why)

    def _checked(
        self, tool: str, command: str, args: dict[str, Any], why: str
    ) -> tuple[Decision | None, tuple[str, ...]]:
        step = PlanStep("1", why, tool=tool, command=command, args=args, provenance=Provenance(BY_SPEC))
        missing = (
            problem.message
            for problem in self._registry.validate(tool, command, args)
            if problem.argument and problem.argument not in args
        )
        problems = (*step_problems(step, self._registry, settled_later=True), *missing)
        if problems:
            return None, tuple(dict.fromkeys(problems))
        about = why or f"{command} {self._brief.spec.name if command == 'return_result' else ''}".strip()
        return Decision(DecisionKind.CALL, about, tool, command, args), ()


def _unfit(offer: Offer, given: dict[str, Any]) -> list[str]:
    """Words that are none of those to choose from."""
    found = []
    for name, schema in offer.shown.input_schema.get("properties", {}).items():
        allowed = schema.get("enum") if isinstance(schema, dict) else None
        if allowed and name in given and given[name] not in allowed:
            said = clean_line(str(given[name]), limit=60)
            found.append(f"{name} is {said!r}; it is one of {', '.join(map(str, allowed))}")
    return found


def _said(returned: Returned) -> dict[str, Any]:
    """What a model filled in, without what it left out."""
    return returned.model_dump(mode="json", exclude_defaults=True)


def _outputs(names: Sequence[str], text: str) -> dict[str, Any]:
    """A phase's outputs in words without a call: of a JSON object in them, or the words where it has one."""
    try:
        given = json_object_in(text)
    except StrictJsonError:
        given = {}
    found = {name: given[name] for name in names if isinstance(given, dict) and name in given}
    return found or ({names[0]: text} if len(names) == 1 else {})


def ends_by_words(kind: AgentType) -> str:
    """What a model is told of words without a call."""
    return {
        AgentType.ROLE: "Words without a call are what you say.",
        AgentType.PIPELINE: "Words without a call are the phase's output.",
        AgentType.GUIDED: "Words without a call are the draft.",
    }.get(kind, "Words without a call are the result.")
