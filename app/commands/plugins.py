"""Commands of other packages, by the entry points `pilothouse.commands`.

An entry point has the command's name and gives an `app.commands.command.Command`. What it sends are ordinary
commands of the engine, which pass the gate like all others. A plug-in is imported when its command is first
needed; one that is broken is named and disturbs nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from inspect import isawaitable
from typing import TYPE_CHECKING

from app.commands.command import Answer, Command, CommandHost, GrammarError, Submit, Values
from engine.core.text import clean_line
from engine.value import dataclass, replace

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "pilothouse.commands"
NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")
TEXT_LIMIT = 200
"""Characters of a help or a fault."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A command of another package, or why there is none."""

    name: str
    source: str
    """The distribution that it comes with, and the object that it names."""
    command: Command | None = None
    wrong: str = ""


@cache
def _points() -> dict[str, tuple[EntryPoint, ...]]:
    """The entry points by the name of their command; nothing is imported."""
    from importlib.metadata import entry_points

    points: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        points[point.name] = (*points.get(point.name, ()), point)
    return points


def plugin_names() -> tuple[str, ...]:
    """The commands that plug-ins say they have; nothing is imported."""
    return tuple(name for name in _points() if NAME.fullmatch(name))


@cache
def load_plugin(name: str, taken: frozenset[str]) -> Plugin | None:
    """The plug-in of a command, imported now; None where no package has it.

    Args:
        name: of the command.
        taken: names and aliases of our own commands.
    """
    points = _points().get(name)
    if not points:
        return None
    source = ", ".join(_source(point) for point in points)
    try:
        command = _checked(name, points, taken)
    except _UnusableError as error:
        return Plugin(clean_line(name, limit=40), source, wrong=clean_line(str(error), limit=TEXT_LIMIT))
    return Plugin(name, source, command)


def load_plugins(taken: frozenset[str]) -> Iterator[Plugin]:
    """All plug-ins, imported."""
    for name in _points():
        plugin = load_plugin(name, taken)
        if plugin is not None:
            yield plugin


class _UnusableError(Exception):
    """Why a plug-in cannot be used."""


def _source(point: EntryPoint) -> str:
    dist = point.dist.name if point.dist is not None else "?"
    return clean_line(f"{dist}: {point.value}", limit=TEXT_LIMIT)


def _checked(name: str, points: tuple[EntryPoint, ...], taken: frozenset[str]) -> Command:
    if not NAME.fullmatch(name):
        raise _UnusableError("its name is no command: small letters, digits and _ are, two to forty of them")
    if name in taken:
        raise _UnusableError(f"'{name}' is a command already")
    if len(points) > 1:
        raise _UnusableError(f"{len(points)} plugins have '{name}'; uninstall all but one")
    try:
        plugin = points[0].load()
    except (Exception, SystemExit) as error:
        raise _UnusableError(f"it cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(plugin, Command):
        raise _UnusableError(f"it gives a {type(plugin).__name__}, not an app.commands.command.Command")
    if plugin.name != name:
        raise _UnusableError(f"its command is named '{clean_line(str(plugin.name), limit=40)}', not '{name}'")
    if not callable(plugin.run) or not isinstance(plugin.help, str) or not plugin.help.strip():
        raise _UnusableError("its `run` has to be callable and its help a text")
    return _guarded(plugin)


def _guarded(command: Command) -> Command:
    """A plug-in's command whose faults are refusals of the line."""

    async def run(host: CommandHost, values: Values) -> Answer | None:
        try:
            answer = command.run(host, values)
            return await answer if isawaitable(answer) else answer
        except GrammarError:
            raise
        except Exception as error:
            fault = clean_line(f"{type(error).__name__}: {error}", limit=TEXT_LIMIT)
            raise GrammarError(f"the plugin '{command.name}' failed: {fault}") from error

    kept = command.run if isinstance(command.run, Submit) else run
    short = clean_line(command.help, limit=TEXT_LIMIT)
    return replace(command, run=kept, help=short, group="Plugins", aliases=(), forms=())
