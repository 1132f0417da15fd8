"""External actions as tool calls: what the program says, as the registry takes it, and the answer back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.bdi.parser import parse_term
from engine.bdi.printing import text_of
from engine.bdi.problems import ProgramError
from engine.bdi.terms import Struct, Term, Var, atom, canonical, items_of, list_of
from engine.domain.ports import CommandSpec

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
        found = {
            name: (tool, spec)
            for tool, commands in tools
            for name, spec in commands.items()
            if name not in NOT_ACTIONS
        }
        return cls(found)

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
        unbound = [one for one in action.args if isinstance(one, Var)]
        if len(unbound) > 1:
            raise ActionError(
                f"{action.functor} gives one answer, and {len(unbound)} arguments have no value"
            )
        given = [one for one in action.args if not isinstance(one, Var)]
        if len(given) > len(spec.parameters):
            raise ActionError(f"{action.functor} takes {len(spec.parameters)} arguments, not {len(given)}")
        args = {
            parameter.name: value_of(one, parameter.type)
            for parameter, one in zip(spec.parameters, given, strict=False)
        }
        return tool, spec.name, args


def _counts(spec: CommandSpec) -> Iterator[int]:
    required = sum(parameter.required for parameter in spec.parameters)
    yield from range(required, len(spec.parameters) + 2)


def value_of(term: Term, kind: str = "string") -> Any:
    """A term as a tool takes it: texts, numbers, lists; other terms as their text."""
    listed = items_of(term)
    if listed is not None:
        return [value_of(one, "any") for one in listed]
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
    if not any(isinstance(one, Var) for one in action.args):
        return action
    answer = _answer(result)
    return action.with_args(tuple(answer if isinstance(one, Var) else one for one in action.args))


def _answer(result: Mapping[str, Any]) -> Term:
    if isinstance(said := result.get("term"), str):
        try:
            return parse_term(said)
        except ProgramError:
            return said
    for name in ("content", "stdout", "items", "message"):
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
        return list_of([term_of(one) for one in value])
    return str(value)


def plain(literal: Struct) -> Struct:
    """A literal without annotations, its variables named in order."""
    made = canonical(literal.with_annotations(()))
    assert isinstance(made, Struct)
    return made
