"""The one registry of commands: finding, reading, completing and explaining lines of the command bar.

A command stands in the module of its noun. The same
lines work in the cockpit's bar and in `pilothouse do`. A line is a command's name, in any case, and what
follows it, which keeps every character. Commands of plug-ins come by entry points: see
`app.commands.plugins`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from os.path import commonprefix

from pydantic import ValidationError

from app.commands.arguments import Flag, Prefix, Setting, Word, parse, split_word
from app.commands.command import (
    Answer,
    Argument,
    Command,
    CommandHost,
    Context,
    GrammarError,
    Request,
    Submit,
    Values,
)
from app.commands.plugins import Plugin, load_plugin, load_plugins, plugin_names
from engine.core.text import clean_line, first_problem

NOUNS = (
    *("goals", "steering", "control", "breakpoints", "budgets", "plan", "beliefs", "approvals", "memory"),
    *("thinking", "notes", "time", "sandbox", "improve", "agents", "crew", "trust", "view"),
)
"""The modules of the nouns, in the order of help."""
LINE_LIMIT = 1_000_000
_IMPROVES = re.compile(
    r"\s*(make\s.*\b(better|faster|shorter|smaller|simpler|cheaper|safer)\b|(speed\s+up|optimi[sz]e|tune)\s)",
    re.I,
)
"""How a request for an improvement begins; such a line is shown as it is understood, and not done."""
SHORTEST_SLIP = 3
"""Letters that a word has which is taken for a misspelt command."""
_SETTING = re.compile(r"(?P<before>(?P<name>[A-Za-z]+)=(?:\S*,)?)")
"""A setting such as `for=minto`, up to what is written last of its value."""
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_PREVIEW = re.compile(r"(.*\S)\s+\?\s*\Z", re.S)


# ------------------------------------------------------------------ finding


@cache
def _of_noun(noun: str) -> dict[str, Command]:
    """The commands of a noun by their names and aliases; its module is imported when it is first needed."""
    commands: tuple[Command, ...] = import_module(f"app.commands.{noun}").COMMANDS
    return {name: command for command in commands for name in (command.name, *command.aliases)}


@cache
def _by_name() -> dict[str, Command]:
    """Every command of ours by its names and aliases."""
    return {name: command for noun in NOUNS for name, command in _of_noun(noun).items()}


def built_in(name: str) -> Command | None:
    """The command of ours with this name or alias, in any case."""
    name = name.lower()
    nouns = reversed(NOUNS)  # what only shows something is asked for most, and needs least
    return next((_of_noun(noun)[name] for noun in nouns if name in _of_noun(noun)), None)


def built_in_commands() -> tuple[Command, ...]:
    """Every command of ours, by noun."""
    return tuple(command for name, command in _by_name().items() if name == command.name)


def find_command(name: str) -> Command:
    """The command with this name or alias, in any case.

    Raises:
        GrammarError: there is none, the message names the nearest; or it is a plug-in's, which is broken.
    """
    command = built_in(name)
    if command is not None:
        return command
    plugin = load_plugin(name.lower(), frozenset(_by_name()))
    if plugin is not None and plugin.command is not None:
        return plugin.command
    if plugin is not None:
        raise GrammarError(
            f"'{plugin.name}' is of a plugin that cannot be used ({plugin.source}): {plugin.wrong}"
        )
    import difflib  # late: only a slip needs it

    near = difflib.get_close_matches(name.lower(), (*_by_name(), *plugin_names()), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "type help for the words there are"
    raise GrammarError(f"'{name[:40]}' is no command here; {hint}")


def all_commands() -> tuple[Command, ...]:
    """Every command, those of plug-ins last."""
    plugins = load_plugins(frozenset(_by_name()))
    return (*built_in_commands(), *(each.command for each in plugins if each.command is not None))


def broken_plugins() -> tuple[Plugin, ...]:
    """The plug-ins that cannot be used, with why."""
    return tuple(each for each in load_plugins(frozenset(_by_name())) if each.command is None)


# ------------------------------------------------------------------ reading


def preview_asked(line: str) -> str | None:
    """The line without the `?` behind it that asks what it would do; None where there is none."""
    match = _PREVIEW.match(line[: LINE_LIMIT + 1])
    return match[1] if match and match[1].strip().lower() not in ("?", "help") else None


def is_improvement_request(line: str) -> bool:
    """Whether a line that is no command says that something is to be better: `make tests faster`."""
    return _IMPROVES.match(line) is not None


def as_command(line: str) -> str:
    """The line as the command it stands for: a request for an improvement, else a goal in plain words.

    A goal is what has more than one word, of which the first is no command and no misspelt one.
    """
    text = line.strip()
    if is_improvement_request(text):
        return f"evolve {text}"
    name, _, rest = split_word(text)
    name = name.lower()
    if not rest.strip() or name.startswith("!") or built_in(name) is not None:
        return line
    known = (*_by_name(), *plugin_names())
    slips = len(name) >= SHORTEST_SLIP and name != "make" and any(_is_slip(name, each) for each in known)
    return line if slips or name in known else f"goal {text}"


def _is_slip(typed: str, name: str) -> bool:
    """Whether one letter is too many, missing or another one, or two have changed places."""
    at = len(commonprefix((typed, name)))  # noqa: RUF071 - by characters, as it is meant
    a, b = typed[at:], name[at:]
    return a[1:] in (b, b[1:]) or a == b[1:] or (a[1::-1], a[2:]) == (b[:2], b[2:])


def needed_state(line: str) -> str:
    """`crew` or `improve` where a line is read against that state, else nothing."""
    name, _, rest = split_word(as_command(line).strip())
    command = built_in(name)
    if command is None:
        return ""
    form = next((form for form in command.forms if form.needs and form.fits(rest.strip())), None)
    return form.needs if form is not None else command.needs


def command_of(line: str) -> tuple[Command, str]:
    """The command of a line, and what follows its name.

    Raises:
        GrammarError: the line is empty or too long, or there is no such command.
    """
    if len(line) > LINE_LIMIT:
        raise GrammarError(f"the line has {len(line)} characters; at most {LINE_LIMIT} are read")
    if (wrong := _NO_TEXT.search(line)) is not None:
        raise GrammarError(
            f"character {wrong.start() + 1} of the line is none that a text may have; leave it out"
        )
    text = as_command(line).strip()
    if text.startswith("!"):
        text = "! " + text[1:].strip()
    name, _, rest = split_word(text)
    if not name:
        raise GrammarError("type a command; help lists them")
    return find_command(name), rest.strip()


def read_line(line: str, context: Context) -> Request:
    """What a line of the command bar asks for; see `as_command`.

    Raises:
        GrammarError: it cannot be understood.
    """
    command, rest = command_of(line)
    line = as_command(line)
    try:
        return _read(command, line, rest, context)
    except GrammarError as error:
        raise GrammarError(f"{error} · usage: {command.usage}") from None
    except ValidationError as error:
        raise GrammarError(f"{first_problem(error)} · usage: {command.usage}") from None
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"{clean_line(str(error), limit=200)} · usage: {command.usage}") from None


def _read(command: Command, line: str, rest: str, context: Context) -> Request:
    form = next((form for form in command.forms if form.fits(rest)), None)
    run, arguments = (form.run, form.arguments) if form is not None else (command.run, command.arguments)
    values = parse(arguments, rest[len(form.word) :].strip() if form is not None else rest, context)
    sends = run.command(context, values) if isinstance(run, Submit) else None
    return Request(line, command, run, values, context, sends)


# ------------------------------------------------------------------ explaining


def hint(line: str, agent: str = "") -> str:
    """How the command at the beginning of a line is used, or what the line is; empty where it is none."""
    if (meant := as_command(line)) != line:
        goal = f"enter: a goal for {agent or 'the agent'}"
        return goal if meant.startswith("goal ") else "enter: shows what evolve would do with it"
    name = split_word(line.strip())[0]
    command = built_in("!" if name.startswith("!") else name)
    return f"{command.usage} — {command.help}" if command is not None else ""


def help_answer(name: str = "") -> Answer:
    """The commands, or one of them with its examples; what is wrong with plug-ins comes last."""
    try:
        commands = (find_command(name),) if name else all_commands()
    except GrammarError as error:
        return 2, {}, str(error)
    rows = [
        {
            "verb": command.name,
            "usage": command.usage,
            "help": command.help,
            "aliases": list(command.aliases),
            "group": command.group,
            **({"examples": list(command.examples)} if command.examples else {}),
        }
        for command in commands
    ]
    broken = () if name else broken_plugins()
    lines = [f"{command.usage:<44} {command.help}" for command in commands]
    lines += [f"  such as: {example}" for command in commands for example in command.examples if name]
    lines += [
        f"{plugin.name:<44} a plugin that cannot be used ({plugin.source}): {plugin.wrong}"
        for plugin in broken
    ]
    wrong = [{"verb": each.name, "source": each.source, "wrong": each.wrong} for each in broken]
    return 0, {"verbs": rows, "broken": wrong}, "\n".join(lines)


def show_help(_host: CommandHost, values: Values) -> Answer:
    """See `help_answer`."""
    return help_answer(values["name"])


# ------------------------------------------------------------------ completing


def complete(line: str, context: Context, limit: int = 12) -> list[tuple[str, str]]:
    """Whole lines that the beginning of a line could become, with a few words about each."""
    text = line.lstrip()
    name, blank, rest = text.partition(" ")
    if not blank:
        lines = [
            (command.name + ("" if command.usage == command.name else " "), command.help)
            for command in built_in_commands()
            if command.name.startswith(name.lower())
        ]
        lines += [(f"{each} ", "a plugin") for each in plugin_names() if each.startswith(name.lower())]
        return lines[:limit]
    try:
        command = find_command(name)
    except GrammarError:
        return []
    lines = _matching(f"{command.name} ", rest, _first_choices(command, context))
    head, last, choices = _further(command, rest, context)
    if head or last.startswith("--"):
        lines += _matching(f"{command.name} {head}", last, choices)
    return lines[:limit]


def _places(arguments: Sequence[Argument]) -> list[Argument]:
    """The arguments that are found by their place, without those that a sign marks."""
    places = [each for each in arguments if isinstance(each, Word | Prefix)]
    return [each for each in places if not (isinstance(each, Prefix) and each.name == "priority")]


def _first_choices(command: Command, context: Context) -> list[tuple[str, str]]:
    if command.choices is not None:
        return list(command.choices(context))
    places = _places(command.arguments)
    return list(places[0].offers(context)) if places else []


def _matching(head: str, typed: str, choices: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The lines that choices make, those that begin with what was typed first."""
    lower = typed.lower()
    starting = [each for each in choices if each[0].lower().startswith(lower)]
    holding = [each for each in choices if lower and lower in each[0].lower() and each not in starting]
    return [(f"{head}{value}", about) for value, about in (*starting, *holding)]


Choices = list[tuple[str, str]]


def _further(command: Command, rest: str, context: Context) -> tuple[str, str, Choices]:
    """What stands before the last word, that word, and what it may be: an option, its value, an argument.

    Of a setting such as `sources=a,b` only what is behind the last comma is looked at.
    """
    before, blank, last = rest.rpartition(" ")
    head, words = before + blank, before.split()
    forms = [form for form in command.forms if form.fits(rest)]
    if (match := _SETTING.match(last)) is not None:
        arguments = (*command.arguments, *(each for form in forms for each in form.arguments))
        setting = _named(arguments, match["name"].lower())
        offered = list(setting.offers(context)) if setting is not None else []
        return head + match["before"], last[len(match["before"]) :], offered
    place, options = _options_before(command, words, last, context)
    if options is not None:
        return head, last, options
    if place >= len(words):
        return head, last, _first_choices(command, context)
    places = _places(command.arguments)
    if forms and forms[0].word == words[0]:
        places = [Word(forms[0].word, ""), *_places(forms[0].arguments)]
    # What may stand last may stand there more than once.
    at = min(len(words) - place, len(places) - 1)
    return head, last, list(places[at].offers(context)) if len(places) > 1 else []


def _named(arguments: Sequence[Argument], name: str) -> Setting | None:
    """The setting with this name."""
    return next((each for each in arguments if isinstance(each, Setting) and each.name == name), None)


def _options_before(
    command: Command, words: Sequence[str], last: str, context: Context
) -> tuple[int, Choices | None]:
    """How many words belong to options, and what the last word may be where it belongs to them, too."""
    flags = {f"--{flag.name}": flag for flag in _flags(command)}
    place = 0
    while place < len(words) and words[place].startswith("--"):
        flag = flags.get(words[place])
        if flag is not None and flag.shown and place == len(words) - 1:
            return place, list(flag.offers(context))
        place += 2 if flag is not None and flag.shown else 1
    if not last.startswith("--") or place != len(words):
        return place, None
    left = {name: flag for name, flag in flags.items() if name not in words}
    return place, [(f"{name} ", flag.shown or "takes no value") for name, flag in left.items()]


def _flags(command: Command) -> list[Flag]:
    everywhere = (*command.arguments, *(each for form in command.forms for each in form.arguments))
    flags = [each for each in everywhere if isinstance(each, Flag) and not each.hidden]
    return list({flag.name: flag for flag in flags}.values())
