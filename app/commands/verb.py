"""Plug-ins of 0.1: `Verb` and `Local` of the entry points `pilothouse.verbs`, carried out as commands of
today.

Kept for one minor version; `app.commands.command.Command` replaces it. See `app/guide/plugins.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isawaitable

from app.commands.arguments import Choices, Word
from app.commands.command import Answer, Command, CommandHost, Context, Submit, Values, answer_message
from app.commands.command import GrammarError as GrammarError
from engine.core.command import Command as EngineCommand
from engine.core.text import clean_line
from engine.value import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Local:
    """What a verb answers without a command; only `Local("say", TEXT)` is taken."""

    action: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Verb:
    """A command as packages for 0.1 declare it."""

    name: str
    usage: str
    help: str
    read: Callable[[str, Context], EngineCommand | Local]
    group: str
    aliases: tuple[str, ...] = ()
    choices: Choices = field(default=lambda _context: ())


def adapt_verb(verb: Verb, limit: int) -> Command:
    """The verb as a command; its faults are refusals of the line."""

    def read(text: str, context: Context) -> EngineCommand | str:
        try:
            meaning = verb.read(text, context)
        except GrammarError:
            raise
        except Exception as error:
            raise _failed(verb.name, error, limit) from error
        if isinstance(meaning, Local) and meaning.action == "say" and isinstance(meaning.argument, str):
            return meaning.argument
        if isinstance(meaning, EngineCommand):
            return meaning
        raise GrammarError(f"the plugin '{verb.name}' gave neither a command nor a text")

    async def run(host: CommandHost, values: Values) -> Answer:
        meaning = values["meaning"]
        return answer_message(True, meaning) if isinstance(meaning, str) else await host.submit(meaning)

    usage = clean_line(verb.usage, limit=limit).removeprefix(verb.name).strip()
    argument = Word(
        "meaning",
        "a text",
        True,
        usage or "[TEXT]",
        read,
        _offered(verb),
        lambda context: read("", context),
        rest=True,
    )
    return Command(verb.name, clean_line(verb.help, limit=limit), run, (argument,), "Plugins")


def guard_command(command: Command, limit: int) -> Command:
    """A plug-in's command whose faults are refusals of the line."""

    async def run(host: CommandHost, values: Values) -> Answer | None:
        try:
            answer = command.run(host, values)
            return await answer if isawaitable(answer) else answer
        except GrammarError:
            raise
        except Exception as error:
            raise _failed(command.name, error, limit) from error

    kept = command.run if isinstance(command.run, Submit) else run
    return replace(
        command, run=kept, help=clean_line(command.help, limit=limit), group="Plugins", aliases=(), forms=()
    )


def _failed(name: str, error: Exception, limit: int) -> GrammarError:
    return GrammarError(
        f"the plugin '{name}' failed: {clean_line(f'{type(error).__name__}: {error}', limit=limit)}"
    )


def _offered(verb: Verb) -> Choices:
    def choices(context: Context) -> Iterable[tuple[str, str]]:
        try:
            return [
                (clean_line(str(value)), clean_line(str(about))) for value, about in verb.choices(context)
            ]
        except Exception:  # noqa: BLE001 - completion is only a help
            return []

    return choices
