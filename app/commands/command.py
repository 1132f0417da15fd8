"""What a command of the bar is: its name, its arguments, its help, and what carries it out.

A command is declared once, in the module of its noun; `app.commands.registry` finds it by name. The bar, the
palette, `pilothouse do`, help, completion and previews are made from the declaration. What a command does it
asks a `CommandHost` for, so that the same declaration serves a terminal with a screen and one without.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.core.agents import ForServers
from engine.core.campaigns import ForMastermind
from engine.core.command import Command as EngineCommand
from engine.core.crew_commands import ForCrew
from engine.core.reasons import read_words
from engine.core.sandbox import AcceptTier, GrantNetwork
from engine.value import dataclass, field

if TYPE_CHECKING:
    from app.projection.improve_text import Preview
    from engine.api.closed_workspace import ClosedWorkspace
    from engine.api.workspace_engine import WorkspaceEngine
    from engine.core.improvement import MastermindState
    from engine.core.ports import CommandSpec
    from engine.core.state import AgentState
    from engine.crew.state import CrewState

OF_NO_AGENT = (ForMastermind, ForCrew, ForServers, AcceptTier, GrantNetwork)
"""Commands that are meant for the workspace, whichever agent is chosen."""
NO_AGENT = "there is no agent yet; agent_create bdi_agent ID makes one"
Answer = tuple[int, dict[str, Any], str]
"""Exit code, JSON answer, text; 0 done, 1 refused or failed, 2 not understood, 3 the operator is needed."""
Values = Mapping[str, Any]
"""What the arguments of a line hold, by their names; None where one was left out."""


class GrammarError(Exception):
    """The line cannot be understood; the message says why and what to type."""


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
    """What a line is understood against."""

    agent: str = ""
    """The agent that commands are meant for."""
    state: AgentState | None = None
    agents: tuple[str, ...] = ()
    missions: Callable[[], tuple[str, ...]] = tuple
    themes: tuple[str, ...] = ()
    examples: Callable[[], tuple[str, ...]] = tuple
    """Goals that the thinker understands."""
    spec_of: Callable[[str], CommandSpec | None] = field(default=lambda _name: None)
    """Describes a command of the sandbox tool."""
    mastermind: MastermindState | None = None
    """What Mastermind knows; None while no line has needed it."""
    components: tuple[tuple[str, str], ...] = ()
    """What can be improved: id and title."""
    crew: CrewState | None = None
    """What the crew knows; None while no line has needed it."""
    servers: Mapping[str, ServerFacts] = field(default_factory=dict)
    """The servers of the workspace's `mcp.json`, by name."""
    paths: tuple[str, ...] = ()
    """Directories and files beneath the sandbox, a directory ending in `/`."""
    here: Path = Path()
    """From where paths lead that were typed; the program's own directory where nothing else is said."""


class CommandHost(Protocol):
    """What carries commands out: the cockpit, or the command line without a screen."""

    @property
    def engine(self) -> WorkspaceEngine:
        """The open workspace."""

    @property
    def context(self) -> Context:
        """The chosen agent, and what else the line was understood against."""

    @property
    def operator(self) -> str:
        """In whose name commands are sent."""

    async def submit(self, command: EngineCommand) -> Answer:
        """Send a command to the engine; its answer, as far as this host waits for it."""

    def say(self, text: str) -> None:
        """Tell the operator something before the answer is there."""

    def view(self, name: str, /, **arguments: object) -> bool:
        """Show what only a screen can show; False where there is none."""


Run = Callable[[CommandHost, Values], "Awaitable[Answer | None] | Answer | None"]
"""Carries a command out; None where its answer is shown already."""


class Argument(Protocol):
    """One argument of a command; see `app.commands.arguments`."""

    @property
    def name(self) -> str:
        """Under which the value is handed over."""

    @property
    def usage(self) -> str:
        """How it stands in a line of usage."""

    @property
    def offers(self) -> Callable[[Context], Iterable[tuple[str, str]]]:
        """What it may be, with a few words about each, for completion."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Sends one command of the engine.

    Either its model, whose fields have the names of the arguments, or a function that makes the command of
    the context and of what was given.
    """

    make: type[EngineCommand] | Callable[[Context, Values], EngineCommand]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are the same in every line."""
    view: str = ""
    """What a screen shows beside it."""
    screen: str = ""
    """Why it needs a screen; empty where it does not."""

    def command(self, context: Context, values: Values) -> EngineCommand:
        """The engine's command.

        Raises:
            GrammarError: the values do not go together.
            pydantic.ValidationError: a field is wrong.
        """
        given = {**{name: value for name, value in values.items() if value is not None}, **self.fixed}
        make = self.make
        if not isinstance(make, type):
            return make(context, given)
        model: type[EngineCommand] = make
        if not issubclass(model, OF_NO_AGENT):
            given.setdefault("agent", context.agent)
        return model.model_validate(given)

    def __call__(self, host: CommandHost, values: Values) -> Awaitable[Answer | None] | Answer:
        """Make the command and send it."""
        return self.send(host, self.command(host.context, values))

    def send(self, host: CommandHost, command: EngineCommand) -> Awaitable[Answer | None] | Answer:
        """Send a command that was made of a line."""
        shown = bool(self.view) and host.view(self.view)
        if self.screen and not shown:
            return 2, {}, self.screen
        return host.submit(command)


@dataclass(frozen=True, slots=True)
class Show:
    """Shows something in a view where there is a screen, else as an answer."""

    answer: Run | None = None
    view: str = ""
    """The view's name; behind it which values it is given, all of them where none is named."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Values that are the same in every line."""
    changes: bool = False
    """Whether more may change than what is shown."""
    states: Callable[[WorkspaceEngine | ClosedWorkspace, str], Awaitable[Answer]] | None = None
    """The answer where it is about agents only: asked with the chosen agent, empty for none."""

    def __call__(self, host: CommandHost, values: Values) -> Awaitable[Answer | None] | Answer | None:
        """Show it."""
        name, *named = self.view.split() or [""]
        values = {**values, **self.fixed}
        if name and host.view(name, **{each: values[each] for each in named or values}):
            return None
        if self.states is not None:
            return self.states(host.engine, host.context.agent)
        if self.answer is None:
            return 2, {}, f"'{name}' works in the cockpit only"
        return self.answer(host, values)


@dataclass(frozen=True, slots=True)
class late:  # noqa: N801 - reads as a word of the declaration
    """A function of this package, named `module:function`, whose module is imported at its first call."""

    place: str

    def find(self) -> Callable[..., Any]:
        """The function."""
        module, _, name = self.place.partition(":")
        function: Callable[..., Any] = getattr(import_module(f"app.commands.{module}"), name)
        return function

    def __call__(self, *given: Any) -> Any:
        """Call it."""
        return self.find()(*given)


@dataclass(frozen=True, slots=True)
class Form:
    """Another way to write a command, tried before its usual one."""

    run: Run
    arguments: tuple[Argument, ...] = ()
    word: str = ""
    """The words it begins with."""
    when: str = ""
    """A pattern that what follows the name begins with."""
    needs: str = ""

    def fits(self, rest: str) -> bool:
        """Whether what follows the command's name is written in this way."""
        if self.word and re.match(rf"{self.word}(\s|\Z)", rest) is None:
            return False
        return re.match(self.when, rest) is not None

    @property
    def usage(self) -> str:
        """What follows the command's name."""
        usages = dict.fromkeys(argument.usage for argument in self.arguments)
        return " ".join(filter(None, (self.word, *usages)))


@dataclass(frozen=True, slots=True)
class Request:
    """A line that was understood."""

    line: str
    command: Command
    run: Run
    values: Values
    context: Context
    sends: EngineCommand | None = None
    """The one command of the engine that it sends; None where it does something else."""

    @property
    def changes(self) -> bool:
        """Whether it may change something beyond what is shown."""
        return not isinstance(self.run, Show) or self.run.changes


PreviewRequest = Callable[[CommandHost, Request], "Awaitable[Preview]"]


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the bar."""

    name: str
    help: str
    run: Run
    arguments: tuple[Argument, ...] = ()
    group: str = ""
    """The heading it stands under in help."""
    forms: tuple[Form, ...] = ()
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    preview: PreviewRequest | None = None
    """Says what a line would do; by default the fields of what it sends and how to take it back."""
    asks_first: Run | None = None
    """What is shown without a screen instead, until `--yes` is behind the line; None for nothing."""
    needs: str = ""
    """`crew` or `improve`, where their state has to be known before a line is read."""
    choices: Callable[[Context], Iterable[tuple[str, str]]] | None = None
    """What may follow the name, where that is not its first argument alone."""
    in_engine: bool = False
    """Whether what is asked is only to be had where the engine is, so that the whole line is sent there."""

    @property
    def usage(self) -> str:
        """The line of usage, with all forms."""
        usages = [Form(self.run, self.arguments).usage, *(form.usage for form in self.forms)]
        forms = sorted(dict.fromkeys(usages), key=bool)  # the bare name first
        return " | ".join(f"{self.name} {form}".rstrip() for form in forms)


@cache
def _helps() -> dict[str, str]:
    """What each command of ours is for, by its name."""
    return read_words(Path(__file__).with_name("help.txt"))


@cache
def _examples() -> list[str]:
    """Lines to try, each beginning with its command."""
    return Path(__file__).with_name("examples.txt").read_text("utf-8").splitlines()


@dataclass(frozen=True, slots=True)
class Group:
    """Declares the commands of one heading of the help; `help.txt` and `examples.txt` have their words."""

    name: str
    needs: str = ""
    preview: PreviewRequest | None = None

    def __call__(
        self, names: str, run: Run | type[EngineCommand], *arguments: Argument, **more: Any
    ) -> Command:
        """A command: its name, aliases behind it, and what sends or shows something."""
        name, *aliases = names.split()
        run = Submit(run) if isinstance(run, type) else run
        usual: dict[str, Any] = {"group": self.name, "needs": self.needs, "preview": self.preview}
        examples = tuple(line for line in _examples() if line.split()[0] == name)
        words: dict[str, Any] = {"help": _helps()[name], "aliases": tuple(aliases), "examples": examples}
        return Command(name, run=run, arguments=arguments, **words, **{**usual, **more})


def chosen_agent(host: CommandHost) -> str:
    """The agent that a command is about.

    Raises:
        GrammarError: there is none yet.
    """
    if not host.context.agent:
        raise GrammarError(NO_AGENT)
    return host.context.agent


def answer_message(ok: bool, message: str, **more: Any) -> Answer:
    """An answer that is one sentence; exit code 1 where it is a refusal."""
    return int(not ok), {"ok": ok, "message": message, **more}, message
