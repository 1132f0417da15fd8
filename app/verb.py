"""What a word of the command bar is, and how its arguments are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.domain import commands as cmd
from engine.domain.ports import CommandSpec
from engine.domain.state import AgentState

if TYPE_CHECKING:
    from engine.crew.state import CrewState
    from engine.domain.mastermind import MastermindState


class GrammarError(Exception):
    """The line cannot be understood; the message says why and what to type."""


@dataclass(frozen=True, slots=True)
class Local:
    """Something the cockpit or the command line does itself, without the engine."""

    action: str
    argument: str = ""


Intent = cmd.Command | Local


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the operator should know of an MCP server; safe to show."""

    line: str
    """How it is, and its command line or address."""
    facts: tuple[tuple[str, str], ...]
    """All of its entry, as labels and texts."""
    waits: bool = False
    """Whether it may not start before the operator has said so."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the words of a line are understood against."""

    agent: str = ""
    """The agent that commands are meant for."""
    state: AgentState | None = None
    agents: tuple[str, ...] = ()
    missions: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """Goals that the thinker understands."""
    spec_of: Callable[[str], CommandSpec | None] = field(default=lambda _name: None)
    """Describes a command of the sandbox tool."""
    mastermind: MastermindState | None = None
    """What Mastermind knows; None while nobody has needed it."""
    components: tuple[tuple[str, str], ...] = ()
    """What can be improved: id and title."""
    crew: CrewState | None = None
    """What the crew knows; None while nobody has needed it."""
    servers: Mapping[str, ServerFacts] = field(default_factory=dict)
    """The servers of the workspace's `mcp.json`, by name."""
    paths: tuple[str, ...] = ()
    """Directories and files beneath the sandbox, a directory ending in `/`."""


Reader = Callable[[str, Context], Intent]
Choices = Callable[[Context], Iterable[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Verb:
    """One word that the command bar knows."""

    name: str
    usage: str
    help: str
    read: Reader
    group: str
    aliases: tuple[str, ...] = ()
    choices: Choices = field(default=lambda _context: ())
    """What may stand as the first argument, with a few words about each."""
    more: tuple[Choices, ...] = ()
    """The same for the second argument, the third, and so on."""
    values: Callable[[Context], Mapping[str, Iterable[tuple[str, str]]]] = field(default=lambda _context: {})
    """What options and settings may be set to, by option: `--type`, `for=`."""


def word(rest: str, what: str) -> tuple[str, str]:
    """The first word and the rest after it."""
    head, _, tail = split_word(rest)
    if not head:
        raise GrammarError(f"{what} is missing")
    return head, tail.strip()


def split_word(text: str) -> tuple[str, str, str]:
    """The first word, the blank behind it, and the rest."""
    match = re.search(r"\s", text)
    return (text, "", "") if match is None else (text[: match.start()], match[0], text[match.end() :])


def only(rest: str, what: str) -> str:
    """The one word that may follow."""
    head, tail = word(rest, what)
    if tail:
        raise GrammarError(f"only {what} is expected; '{tail[:40]}' is too much")
    return head
