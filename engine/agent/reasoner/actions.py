"""External actions as tool calls: what the program says, as the registry takes it, and the answer back.

What an agent with a reasoner is created with, checked where it comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from engine.bdi.errors import ProgramError
from engine.bdi.parser import parse_literal, parse_program, parse_term
from engine.bdi.printer import text_of
from engine.bdi.rewriting import canonical
from engine.bdi.semantics import Limits, Semantics
from engine.bdi.terms import Struct, Term, Var, atom, items_of, list_of
from engine.core.ports import CommandSpec
from engine.core.text import first_problem
from engine.tools.worlds.world import WORLDS
from engine.value import dataclass

TOOL = "simple_coder"
"""The tool whose commands are actions of every program."""
NOT_ACTIONS = frozenset({"shell"})
"""Commands that only the operator has."""


class ActionError(ValueError):
    """An action that cannot be a tool call; the message says why."""


@dataclass(frozen=True, slots=True)
class ActionTable:
    """The actions that a program has: commands of the sandbox tool, and of the agent's world before them."""

    commands: Mapping[str, tuple[str, CommandSpec]]
    """Tool and command by the action's name."""

    @classmethod
    def of(cls, *tools: tuple[str, Mapping[str, CommandSpec]]) -> ActionTable:
        """The table over some tools; of two commands of one name the later one counts."""
        specs = {
            name: (tool, spec)
            for tool, commands in tools
            for name, spec in commands.items()
            if name not in NOT_ACTIONS
        }
        return cls(specs)

    @property
    def arities(self) -> dict[str, frozenset[int]]:
        """How many arguments each action takes; one more than its command where the answer is wanted."""
        return {name: frozenset(_counts(spec)) for name, (_, spec) in self.commands.items()}

    def call(self, action: Struct) -> tuple[str, str, dict[str, Any]]:
        """Tool, command and arguments of an action; arguments stand in the order of the command's.

        Raises:
            ActionError: it asks for two answers, or has more arguments than the command.
        """
        tool, spec = self.commands[action.functor]
        unbound = [arg for arg in action.args if isinstance(arg, Var)]
        if len(unbound) > 1:
            raise ActionError(
                f"{action.functor} gives one answer, and {len(unbound)} arguments have no value"
            )
        given = [arg for arg in action.args if not isinstance(arg, Var)]
        if len(given) > len(spec.parameters):
            raise ActionError(f"{action.functor} takes {len(spec.parameters)} arguments, not {len(given)}")
        args = {
            parameter.name: value_of(arg, parameter.type)
            for parameter, arg in zip(spec.parameters, given, strict=False)
        }
        return tool, spec.name, args


def _counts(spec: CommandSpec) -> Iterator[int]:
    required = sum(parameter.required for parameter in spec.parameters)
    yield from range(required, len(spec.parameters) + 2)


def value_of(term: Term, kind: str = "string") -> Any:
    """A term as a tool takes it: texts, numbers, lists; other terms as their text."""
    listed = items_of(term)
    if listed is not None:
        return [value_of(item, "any") for item in listed]
    if isinstance(term, str):
        return term
    if isinstance(term, int | float):
        whole = isinstance(term, float) and term.is_integer()
        number: int | float = int(term) if whole else term
        return str(number) if kind == "string" else number
    if kind == "boolean" and text_of(term) in ("true", "false"):
        return text_of(term) == "true"
    return text_of(term)


def answered(action: Struct, result: Mapping[str, Any]) -> Struct:
    """The action with the tool's answer in the place of the argument that had no value."""
    if not any(isinstance(arg, Var) for arg in action.args):
        return action
    answer = _answer(result)
    return action.with_args(tuple(answer if isinstance(arg, Var) else arg for arg in action.args))


def _answer(result: Mapping[str, Any]) -> Term:
    if isinstance(text := result.get("term"), str):
        try:
            return parse_term(text)
        except ProgramError:
            return text
    for name in ("content", "stdout", "items", "output", "message"):
        if name in result:
            return term_of(result[name])
    return ""


def term_of(value: Any) -> Term:
    """A tool's value as a term: texts and numbers as they are, lists as lists, all else as its text."""
    if isinstance(value, bool):
        return atom("true" if value else "false")
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, list):
        return list_of([term_of(item) for item in value])
    return str(value)


def plain(literal: Struct) -> Struct:
    """A literal without annotations, its variables named in order."""
    made = canonical(literal.with_annotations(()))
    assert isinstance(made, Struct)
    return made


def read_goal(text: str) -> tuple[str, Struct]:
    """Sign and literal of a goal as an operator writes it: `reach(home)`, `!reach(home)`, `?where(X)`.

    Raises:
        ProgramError: it is none; the message names the place.
    """
    written = text.strip().removesuffix(".")
    sign = "+?" if written.startswith(("?", "+?")) else "+!"
    return sign, parse_literal(written.lstrip("+").lstrip("!?"), "the goal")


def percepts_of(world: Mapping[str, Any]) -> tuple[Struct, ...]:
    """What is perceived in a world."""
    return tuple(parse_literal(str(percept)) for percept in world.get("percepts", ()))


def facts_of(facts: Mapping[str, Any]) -> tuple[Struct, ...]:
    """Facts about the workspace as percepts: `workspace.entries` becomes a `workspace_entries(Item)` each."""
    structs: list[Struct] = []
    for key, value in facts.items():
        if value is None:
            continue
        functor = "".join(char if char.isalnum() else "_" for char in key).lower()
        if functor[:1].isalpha():
            items = value if isinstance(value, list) else [value]
            structs += [Struct(functor, (term_of(item),)) for item in items]
    return tuple(structs)


PROGRAM_LIMIT = 1_000_000
"""Characters of a program."""
LIMITS = Limits(
    beliefs=50_000,
    belief_size=50_000_000,
    intentions=5_000,
    frames=100_000,
    events=50_000,
    query_steps=100_000,
    size=100_000,
)
"""What a program may use while others live beside it: its longest query takes about a tenth of a second."""
Remark = Annotated[str, Field(min_length=1, max_length=2_000)]


class ReasonerError(ValueError):
    """A configuration with which there can be no reasoner; the message says what is wrong and where."""


class GenerationSettings(BaseModel):
    """How plans are generated for the agent; what is unset is inherited."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    on: bool = True
    """Whether goals without a plan get one generated; without it they fail."""
    approve: bool = False
    """Whether the operator approves plans before they are installed."""
    proactive: bool = False
    """Whether plans are also generated before they are needed."""
    prompt: Literal["no-hints", "hints", "hints-and-remarks"] = "hints-and-remarks"
    model: str | None = Field(default=None, max_length=200)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, gt=0, le=1_000_000)
    request_timeout_s: float | None = Field(default=None, gt=0, le=86_400)
    remarks: tuple[Remark, ...] = ()
    attempts: int = Field(default=3, ge=1, le=100)
    """Generations for one goal until one proves itself."""
    repairs: int = Field(default=2, ge=0, le=10)
    """How often a model is told what is wrong with its answer."""
    answers: tuple[str, ...] = ()
    """Recorded answers that are given in the place of a model's, the last one again and again."""


class ReasonerConfig(BaseModel):
    """The program of an agent, and how it is run."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)
    program: str = Field(max_length=PROGRAM_LIMIT)
    source: str = Field(default="program.asl", max_length=300)
    """What the program is called in messages."""
    semantics: Literal["jason", "compat"] = "jason"
    edition: Literal[1, 2] = 1
    """Of `Semantics`: 1 as it was recorded before new agents were given the newest."""
    own_goals: bool = True
    """Whether the goals of the program are adopted when the agent is created."""
    tracing: bool = False
    """Whether every change of beliefs, events and intentions is journaled."""
    world: str = ""
    """The small world that it lives in; empty for none."""
    seed: int = Field(default=7, ge=-(2**31), lt=2**31)
    """Of the world."""
    generation: GenerationSettings = GenerationSettings()

    @field_validator("world")
    @classmethod
    def _known_world(cls, value: str) -> str:
        if value and value not in WORLDS:
            raise ValueError(f"there is no world '{value[:40]}'; worlds: {', '.join(WORLDS)}")
        return value

    @property
    def rules(self) -> Semantics:
        """The reasoner's settings."""
        if self.semantics == "compat":
            return Semantics.compat()
        return Semantics(edition=self.edition)


def read_config(meta: Mapping[str, Any]) -> ReasonerConfig:
    """The configuration of an agent, with a program that can be read.

    Raises:
        ReasonerError: it cannot be used; every syntax error is named by line and column.
    """
    if "program" not in meta:
        raise ReasonerError(
            "an AgentSpeak(L) agent needs a program: agent_create asl_agent ID program=FILE.asl"
        )
    try:
        config = ReasonerConfig.model_validate(dict(meta))
    except ValidationError as error:
        raise ReasonerError(first_problem(error)) from None
    try:
        parse_program(config.program, config.source)
    except ProgramError as error:
        problems = [f"{problem.advice}, in: {problem.written.strip()}" for problem in error.problems]
        raise ReasonerError(" · ".join(problems)) from None
    return config
