"""What a programmer says to a model about an agent: meanings, what is admissible, the actions, remarks.

A meaning's text may name the variables of its template in braces, `{Direction}`, and `{functor}`; it
then serves the template and every instance of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.bdi.printer import text_of
from engine.bdi.syntax import Doc, DocKind, Subject
from engine.bdi.terms import Struct, Var
from engine.value import dataclass

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Meaning:
    """A goal, belief or action with variables for arguments, and what it means in plain words."""

    template: Struct
    text: str = ""

    def __post_init__(self) -> None:
        unknown = set(_PLACE.findall(self.text)) - set(self._names()) - {"functor"}
        if unknown:
            raise ValueError(
                f"the meaning of {text_of(self.template)} names {{{sorted(unknown)[0]}}}, "
                f"which is none of {', '.join(('functor', *self._names()))}"
            )

    def _names(self) -> tuple[str, ...]:
        return tuple(arg.name for arg in self.template.args if isinstance(arg, Var))

    def of(self, term: Struct) -> str:
        """The meaning of an instance; a variable among its arguments stands in back-ticks."""
        values = {"functor": term.functor}
        for place, value in zip(self.template.args, term.args, strict=True):
            if isinstance(place, Var):
                values[place.name] = f"`{text_of(value)}`" if isinstance(value, Var) else text_of(value)
        return _PLACE.sub(lambda match: values[match[1]], self.text)


def meaning_of(term: Struct, known: Iterable[Meaning]) -> str:
    """What a term means by the first meaning with its name and number of arguments; empty when none has."""
    for meaning in known:
        if meaning.template.indicator == term.indicator and meaning.text:
            return meaning.of(term)
    return ""


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """An action that the agent has, by its signature."""

    name: str
    parameters: tuple[str, ...] = ()
    """A name for each parameter; an empty one has none."""
    purpose: str = ""
    """May name parameters in braces."""
    internal: bool = False
    """Whether the reasoner runs it itself, `.name(…)`, or the environment does."""

    @property
    def template(self) -> Struct:
        """The action with its parameters as variables, `ParameterN` where one has no name."""
        names = (
            name[:1].upper() + name[1:] if name else f"Parameter{number}"
            for number, name in enumerate(self.parameters, 1)
        )
        return Struct(self.name, tuple(map(Var, names)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Documentation:
    """All that is documented of an agent, each sort in the order of the program."""

    admissible_goals: tuple[Meaning, ...] = ()
    admissible_beliefs: tuple[Meaning, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    """Of goals, beliefs and plans that are not listed as admissible."""
    actions: tuple[ActionSpec, ...] = ()
    remarks: tuple[str, ...] = ()


def documentation_of(docs: Iterable[Doc]) -> Documentation:
    """The documentation comments of a program; an action whose name begins with a dot is internal.

    Raises:
        ValueError: a meaning names a parameter that its template does not have; the line is named.
    """
    lines: dict[str, list[Meaning]] = {"goal": [], "belief": [], "": []}
    actions: list[ActionSpec] = []
    remarks: list[str] = []
    for doc in docs:
        if doc.literal is None:
            remarks.append(doc.text)
            continue
        try:
            meaning = Meaning(doc.literal, doc.text)
        except ValueError as error:
            raise ValueError(f"line {doc.position.line}: {error}") from None
        if doc.subject is Subject.ACTION:
            actions.append(_action(meaning))
        else:
            admissible = doc.kind is DocKind.ADMISSIBLE and doc.subject in (Subject.GOAL, Subject.BELIEF)
            lines[str(doc.subject) if admissible else ""].append(meaning)
    return Documentation(
        admissible_goals=tuple(lines["goal"]),
        admissible_beliefs=tuple(lines["belief"]),
        meanings=tuple(lines[""]),
        actions=tuple(actions),
        remarks=tuple(remarks),
    )


def _action(meaning: Meaning) -> ActionSpec:
    name = meaning.template.functor
    parameters = tuple(arg.name if isinstance(arg, Var) else "" for arg in meaning.template.args)
    return ActionSpec(name.removeprefix("."), parameters, meaning.text, internal=name.startswith("."))
