"""Verbs of others: Python entry points of the group `pilothouse.verbs`.

An entry point bears the verb's name and gives an `app.verb.Verb`. What its `read` answers is an ordinary
command, which goes through the gate like all others, or `Local("say", TEXT)` for an answer without one.
A plugin is loaded when its verb is first needed; one that is broken is named and hurts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from app.verb import Context, GrammarError, Intent, Local, Reader, Verb
from engine.domain.command import Command
from engine.domain.text import clean_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "pilothouse.verbs"
NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")
TEXT_LIMIT = 200
"""Characters of a usage or a help."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A verb of others, or why there is none."""

    name: str
    source: str
    """The distribution that it comes with, and the object that it names."""
    verb: Verb | None = None
    wrong: str = ""


@cache
def _points() -> dict[str, tuple[EntryPoint, ...]]:
    """The entry points by the name of their verb; nothing is imported."""
    from importlib.metadata import entry_points

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


def names() -> tuple[str, ...]:
    """The verbs that plugins say they have; nothing is imported."""
    return tuple(name for name in _points() if NAME.fullmatch(name))


@cache
def plugin(name: str, taken: frozenset[str]) -> Plugin | None:
    """The plugin of a verb, loaded now; None where none says that it has it.

    Args:
        name: of the verb.
        taken: names and aliases of the verbs that there are without plugins.
    """
    points = _points().get(name)
    if not points:
        return None
    source = ", ".join(_source(point) for point in points)
    try:
        verb = _checked(name, points, taken)
    except _WrongError as error:
        return Plugin(clean_line(name, limit=40), source, wrong=clean_line(str(error), limit=TEXT_LIMIT))
    return Plugin(name, source, verb)


def plugins(taken: frozenset[str]) -> Iterator[Plugin]:
    """All plugins, loaded."""
    for name in _points():
        found = plugin(name, taken)
        if found is not None:
            yield found


class _WrongError(Exception):
    """Why a plugin cannot be used."""


def _source(point: EntryPoint) -> str:
    dist = point.dist.name if point.dist is not None else "?"
    return clean_line(f"{dist}: {point.value}", limit=TEXT_LIMIT)


def _checked(name: str, points: tuple[EntryPoint, ...], taken: frozenset[str]) -> Verb:
    if not NAME.fullmatch(name):
        raise _WrongError("its name is no verb: small letters, digits and _ are, two to forty of them")
    if name in taken:
        raise _WrongError(f"'{name}' is a verb already")
    if len(points) > 1:
        raise _WrongError(f"{len(points)} plugins have '{name}'; uninstall all but one")
    try:
        verb = points[0].load()
    except (Exception, SystemExit) as error:
        raise _WrongError(f"it cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(verb, Verb):
        raise _WrongError(f"it gives a {type(verb).__name__}, not an app.verb.Verb")
    if not callable(verb.read) or not callable(verb.choices):
        raise _WrongError("its `read` and `choices` have to be callable")
    if verb.name != name:
        raise _WrongError(f"its verb is named '{clean_line(str(verb.name), limit=40)}', not '{name}'")
    if not all(isinstance(text, str) and text.strip() for text in (verb.usage, verb.help)):
        raise _WrongError("its usage and its help have to be texts")
    return replace(
        verb,
        usage=clean_line(verb.usage, limit=TEXT_LIMIT),
        help=clean_line(verb.help, limit=TEXT_LIMIT),
        group="Plugins",
        aliases=(),
        read=_guarded(name, verb.read),
        choices=lambda context: _some(verb, context),
    )


def _guarded(name: str, read: Reader) -> Reader:
    """A reader whose faults are refusals."""

    def reads(rest: str, context: Context) -> Intent:
        try:
            meant = read(rest, context)
        except GrammarError:
            raise
        except Exception as error:
            told = clean_line(f"{type(error).__name__}: {error}", limit=TEXT_LIMIT)
            raise GrammarError(f"the plugin '{name}' failed: {told}") from error
        if isinstance(meant, Local) and meant.action == "say" and isinstance(meant.argument, str):
            return meant
        if isinstance(meant, Command):
            return meant
        raise GrammarError(f"the plugin '{name}' gave neither a command nor a text")

    return reads


def _some(verb: Verb, context: Context) -> Iterable[tuple[str, str]]:
    try:
        return [(clean_line(str(value)), clean_line(str(about))) for value, about in verb.choices(context)]
    except Exception:  # noqa: BLE001 - completion is only a help
        return []
