"""The calls that a run's model may make at a step, and how its answer becomes a decision.

What may be called follows from the specification and the method; enumerations come from routing, and a tool
with an empty one is not offered. A call is taken as it is; words without a call end the step: they are the
result, the phase's output, or what a role says.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from engine.core.agents import BY_SPEC, CREW
from engine.core.journal import canonical
from engine.core.plan import PlanStep
from engine.core.text import StrictJsonError, clean_line
from engine.core.thinking import Decision, DecisionKind
from engine.crew.ontology.kinds import AgentType, ErrorCode, InvalidError
from engine.crew.ontology.results import ReturnedResult, parse_returned, parse_text_answer, schema_for
from engine.crew.ontology.spec import OPENED_MOST, AgentSpec, Phase, SkillFiles
from engine.crew.thinker.run_plan import CALLS_MOST, STEPS, Brief, fail_handoff
from engine.models.lenient import Notes, example_of, fitted, small_schema, values_in
from engine.models.messages import ModelAnswer, ToolUse
from engine.models.request import ToolSpec
from engine.models.structured import input_of
from engine.planning.thinkers.claude_decision import call_problems, calls_in, first_call
from engine.tools.mcp.names import resolve
from engine.tools.registry import ToolRegistry, json_schema
from engine.value import dataclass

GIVE_UP = "give_up"
FORM = "form"
"""Where a handoff's metadata may have the JSON Schema of the data that is to come back."""
ESCALATE = "escalate_to_operator"
READ_SKILL = "read_skill"
RUN = "simple_coder.run"
Called: TypeAlias = Callable[[ToolUse, str], tuple[Decision | None, tuple[str, ...]]]
_ONLY_JSON = re.compile(r"(?:```\w*\s*)?\{.*\}\s*(?:```)?", re.DOTALL)
"""An answer of nothing but an object."""
_OFFERS = tomllib.loads(Path(__file__).with_name("offers.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as a model is offered it, and the command that a call of it is."""

    shown: ToolSpec
    tool: str
    command: str


def offers(
    brief: Brief,
    step: PlanStep,
    registry: ToolRegistry,
    others: Sequence[AgentSpec],
    made: int,
    files: SkillFiles | None = None,
) -> tuple[Offer, ...]:
    """What may be called now.

    Args:
        brief: what the run was made for.
        step: the abstract step that is decided on.
        registry: every tool that there is.
        others: the agents that the run may delegate to.
        made: calls on the way that were made for the step so far.
        files: what came with its skill.
    """
    ends = tuple(_ends(brief, step, others))
    if made >= CALLS_MOST:
        return ends
    reading = tuple(_reading(files))
    if step.provenance.clause == STEPS:
        return (*reading, *ends)
    offered = (*_outside(brief.spec, phase_of(brief, step), registry), *reading)
    return (*offered, *_others(brief, others), *ends)


def _reading(files: SkillFiles | None) -> Iterator[Offer]:
    """Opening the files that came with the skill, in every phase and step."""
    closed = [path for path in files.sizes if path not in files.texts] if files is not None else []
    if closed and files is not None and len(files.texts) < OPENED_MOST:
        yield _crew(READ_SKILL)


def phase_of(brief: Brief, step: PlanStep) -> Phase | None:
    """The phase that an abstract step is about."""
    about = step.provenance.clause
    return next((phase for phase in brief.spec.phases if phase.id == about), None)


def _outside(spec: AgentSpec, phase: Phase | None, registry: ToolRegistry) -> Iterator[Offer]:
    """Commands of the engine's tools and of servers."""
    seen = set()
    for name in dict.fromkeys((*_named(spec), *(phase.tools if phase is not None else ()))):
        for tool, command in _meant(name, registry):
            command_spec = registry.get(tool).commands[command]
            if not command_spec.operator_only and (tool, command) not in seen:
                seen.add((tool, command))
                shown = ToolSpec(
                    f"{tool}__{command}"[:64], command_spec.description, json_schema(command_spec)
                )
                yield Offer(shown, tool, command)


def _meant(name: str, registry: ToolRegistry) -> Iterator[tuple[str, str]]:
    """The commands that are there of a name as `simple_coder.run git` or `server.*`, in any spelling."""
    plain = name.partition(" ")[0]
    tool, _, command = plain.partition(".")
    if tool in registry and tool != CREW and command in ("", "*"):
        yield from ((tool, command) for command in registry.get(tool).commands)
        return
    there = {tool.id: tool.commands for tool in registry if tool.id != CREW}
    if (resolved := resolve(plain, there)) is not None:
        yield resolved


def _named(spec: AgentSpec) -> Iterator[str]:
    yield from spec.tools.local
    for use in spec.tools.mcp_servers:
        yield from (f"{use.server}.{tool}" for tool in use.tools)


def _others(brief: Brief, others: Sequence[AgentSpec]) -> Iterator[Offer]:
    """Handing work on, asking the operator, counting."""
    if others:
        listed = "; ".join(f"{other.id}: {other.description[:120]}" for other in others)
        yield _crew("delegate", to={"enum": [other.id for other in others]}, listed=listed)
    if brief.spec.handoff.supports.escalate:
        yield _crew(ESCALATE)
    if brief.spec.compute:
        yield _crew("compute", formula=brief.spec.compute)
    if brief.spec.type is AgentType.ROLE:
        yield from (_crew("update_clarity"), _crew("park"))


def _ends(brief: Brief, step: PlanStep, others: Sequence[AgentSpec]) -> Iterator[Offer]:
    """What ends the step."""
    phase = phase_of(brief, step)
    if step.provenance.clause == STEPS:
        yield _crew("draft")
        return
    if phase is not None:
        outputs: dict[str, Any] = {name: {} for name in phase.outputs}
        yield _crew("checkpoint", outputs={"properties": outputs, "required": list(outputs)})
    elif brief.has_floor:
        yield _crew("reply")
        if floor := [other.id for other in others if other.handoff.supports.transfer]:
            yield _crew("transfer_to", agent={"enum": floor})
    else:
        about = "Return the result. Leave out what you do not know; nothing is to be made up."
        yield Offer(ToolSpec("return_result", about, _returned(brief)), CREW, "return_result")
    if not brief.has_floor:
        yield _crew(GIVE_UP)


def _returned(brief: Brief) -> dict[str, Any]:
    """The form of a result; a caller may have said what the data in it are to be."""
    schema = {**schema_for(brief.spec), "additionalProperties": False}
    form = brief.context.metadata.get(FORM)
    if isinstance(form, dict):
        definitions = {name: value for name, value in form.items() if name == "$defs"}
        data = {name: value for name, value in form.items() if name != "$defs"}
        schema = {
            **schema,
            **definitions,
            "properties": {**schema["properties"], "data": data},
            "required": [*schema["required"], "data"],
        }
    return schema


def _crew(name: str, **given: Any) -> Offer:
    """An offer of the table, with what a run adds to its properties, and the words in its description."""
    offer = _OFFERS[name]
    schema = {
        "type": "object",
        "properties": {key: form | given.get(key, {}) for key, form in offer["properties"].items()},
        "required": offer["required"],
        "additionalProperties": False,
    }
    shown = ToolSpec(name, offer["description"].format_map(given), schema)
    return Offer(shown, CREW, offer.get("command", name))


class SpecDecisionParser:
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

    def read(self, answer: ModelAnswer, notes: Notes) -> tuple[Decision | None, tuple[str, ...]]:
        """The decision; None and what is wrong with the answer where there is none."""
        called = partial(self._called, notes=notes)
        if answer.tool_uses:
            return first_call(answer.tool_uses, answer.text.strip(), called)
        return self._words(answer.text.strip(), notes, called)

    def _words(self, text: str, notes: Notes, called: Called) -> tuple[Decision | None, tuple[str, ...]]:
        if not text:
            return None, ("the answer is empty",)
        if self._in_words and (_ONLY_JSON.fullmatch(text) or '"tool"' in text):
            return self._from_object(text, notes, called)
        if self._step.provenance.clause == STEPS:
            return self._call("ask", {"draft": text})
        phase = phase_of(self._brief, self._step)
        if phase is not None:
            return self._call("checkpoint", {"output": text, "outputs": _outputs(phase.outputs, text)})
        if self._brief.has_floor:
            return self._call("reply", {"text": text})
        return self._call("return_result", _said(parse_text_answer(text)))

    def _from_object(
        self, text: str, notes: Notes, called: Called
    ) -> tuple[Decision | None, tuple[str, ...]]:
        """What an answer of nothing but JSON decides: a call, or the input of one; all else is no content."""
        try:
            uses = calls_in(text, notes)
            if uses and (uses[0].name in self._offered or '"tool"' in text):
                return first_call(uses, "", called)
            (value,) = values_in(text, notes)
        except ValueError as error:
            return None, (str(error),)
        for name, offer in self._offered.items():
            schema = offer.shown.input_schema
            names = {*schema.get("properties", ()), *_data_of(schema)}
            if isinstance(value, dict) and offer.tool == CREW and value and set(value) <= names:
                notes.append(f"the object was taken as the input of `{name}`")
                return called(ToolUse("", name, value), "")
        end = next(reversed([name for name in self._offered if name != GIVE_UP]))
        example = canonical({"tool": end, "input": example_of(self._offered[end].shown.input_schema)})
        return None, (f"the object is no call of a tool: answer as in {example}",)

    def _called(self, use: ToolUse, why: str, notes: Notes) -> tuple[Decision | None, tuple[str, ...]]:
        shown = clean_line(use.name, limit=80)
        offer = self._offered.get(use.name) or self._offered.get(use.name.rpartition(".")[2])
        if offer is None:
            return None, (f"there is no tool {shown!r}; tools: {', '.join(self._offered)}",)
        try:
            given = _put_right(input_of(use, notes), offer, notes)
        except StrictJsonError as error:
            return None, (str(error),)
        if offer.shown.name == GIVE_UP:
            reason = clean_line(str(given.get("reason", "")), limit=2_000) or "no reason was given"
            return fail_handoff(f"given up: {reason}", ErrorCode.INTERNAL), ()
        if problems := tuple(_unfit(offer, given)):
            return None, tuple(f"{shown}: {problem}" for problem in problems)
        if (offer.tool, offer.command) == (CREW, "return_result"):
            try:
                return self._call("return_result", _said(parse_returned(given)), why)
            except InvalidError as error:
                return None, tuple(map(str, error.problems))
        return self._checked(offer.tool, offer.command, given, why)

    def _call(
        self, command: str, args: dict[str, Any], why: str = ""
    ) -> tuple[Decision | None, tuple[str, ...]]:
        return self._checked(CREW, command, args, why)

    def _checked(
        self, tool: str, command: str, args: dict[str, Any], why: str
    ) -> tuple[Decision | None, tuple[str, ...]]:
        if problems := call_problems(self._registry, tool, command, args, BY_SPEC):
            return None, problems
        about = why or f"{command} {self._brief.spec.name if command == 'return_result' else ''}".strip()
        return Decision(DecisionKind.CALL, about, tool, command, args), ()


def _data_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The fields of the data that an input holds, where a caller said what they are."""
    fields: dict[str, Any] = schema.get("properties", {}).get("data", {}).get("properties", {})
    return fields


def _put_right(given: Any, offer: Offer, notes: Notes) -> dict[str, Any]:
    """The input of a call as its schema wants it; fields of the data that stand beside it are put into it.

    Raises:
        StrictJsonError: it is no object.
    """
    schema = small_schema(offer.shown.input_schema)
    fields = _data_of(schema)
    if isinstance(given, dict) and isinstance(given.get("output"), dict) and "output" in schema["properties"]:
        notes.append("`output` is an object and was taken as `data`")
        given = {"data": given["output"], **given, "output": canonical(given["output"])}
    if isinstance(given, dict) and (loose := set(given) & set(fields) - set(schema["properties"])):
        notes.append(f"`{', '.join(sorted(loose))}` was put into `data`")
        inside = given.get("data") if isinstance(given.get("data"), dict) else {}
        kept = {name: value for name, value in given.items() if name not in loose}
        given = {**kept, "data": {**{name: given[name] for name in loose}, **(inside or {})}}
    value = fitted(given, schema, notes) if offer.tool == CREW else given
    if not isinstance(value, dict):
        raise StrictJsonError(f"the input of `{offer.shown.name}` must be an object")
    if fields and not value.get("output") and value.get("data"):
        value["output"] = canonical(value["data"])
    return value


def _unfit(offer: Offer, given: dict[str, Any]) -> list[str]:
    """Words that are none of those to choose from."""
    problems = []
    for name, schema in offer.shown.input_schema.get("properties", {}).items():
        allowed = schema.get("enum") if isinstance(schema, dict) else None
        if allowed and name in given and given[name] not in allowed:
            message = clean_line(str(given[name]), limit=60)
            problems.append(f"{name} is {message!r}; it is one of {', '.join(map(str, allowed))}")
    return problems


def _said(returned: ReturnedResult) -> dict[str, Any]:
    """What a model filled in, without what it left out."""
    return returned.model_dump(mode="json", exclude_defaults=True)


def _outputs(names: Sequence[str], text: str) -> dict[str, Any]:
    """A phase's outputs in words without a call: of a JSON object in them, or the words where it has one."""
    try:
        given = values_in(text, [])[0]
    except StrictJsonError:
        given = {}
    outputs = {name: given[name] for name in names if isinstance(given, dict) and name in given}
    return outputs or ({names[0]: text} if len(names) == 1 else {})


def ends_by_words(kind: AgentType) -> str:
    """What a model reads about words without a call."""
    return {
        AgentType.ROLE: "Words without a call are what you say.",
        AgentType.PIPELINE: "Words without a call are the phase's output.",
        AgentType.GUIDED: "Words without a call are the draft.",
    }.get(kind, "Words without a call are the result.")
