"""The arguments of commands: each says how it is written, what it may be, and how its value is read.

`parse` reads what follows a command's name. Every refusal says what is wrong and what is expected; the
registry puts the line of usage behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from app.commands.command import Argument, Context, GrammarError
from engine.value import dataclass, field

Parse = Callable[[str, Context], Any]
Choices = Callable[[Context], Iterable[tuple[str, str]]]


def split_word(text: str) -> tuple[str, str, str]:
    """The first word, the blank behind it, and the rest."""
    match = re.search(r"\s", text)
    return (text, "", "") if match is None else (text[: match.start()], match[0], text[match.end() :])


def word(rest: str, what: str) -> tuple[str, str]:
    """The first word and the rest after it.

    Raises:
        GrammarError: there is none.
    """
    head, _, tail = split_word(rest)
    if not head:
        raise GrammarError(f"{what} is missing")
    return head, tail.strip()


def no_choices(_context: Context) -> Iterable[tuple[str, str]]:
    """Nothing is known of what it may be."""
    return ()


def pairs(*choices: tuple[str, str]) -> Choices:
    """Choices that are always the same."""
    return lambda _context: choices


@dataclass(frozen=True, slots=True)
class Word:
    """One word."""

    name: str
    what: str
    """As a refusal calls it: `a step`."""
    optional: bool = False
    shown: str = ""
    """How it stands in a usage; by default its name in capitals."""
    parse: Parse = field(default=lambda text, _context: text)
    offers: Choices = no_choices
    default: Any = None
    """Its value where it is left out, or what finds it in the context."""
    rest: bool = False
    """Whether it takes all that is left of the line."""

    @property
    def usage(self) -> str:
        """How it stands in a line of usage."""
        shown = self.shown or self.name.upper().replace("_", " ")
        return f"[{shown}]" if self.optional and not shown.startswith("[") else shown

    def take(self, text: str, context: Context) -> tuple[Any, str]:
        """Its value, and what is left of the line."""
        head, _, tail = (text, "", "") if self.rest else split_word(text)
        if head:
            return self.parse(head, context), tail.strip()
        if not self.optional:
            raise GrammarError(f"{self.what} is missing")
        return self.default(context) if callable(self.default) else self.default, ""


def Rest(name: str, what: str, **more: Any) -> Word:  # noqa: N802 - reads as the kind of argument that it makes
    """All that is left of the line, as it stands."""
    return Word(name, what, rest=True, **more)


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands at the beginning where it fits a pattern, else it is left out: `!3`, `a12`, `always`."""

    name: str
    pattern: str
    """Its first group is the value."""
    shown: str
    parse: Callable[[str], Any] = str
    offers: Choices = no_choices
    wrong: str = ""
    """What is said of a line that begins with the pattern's first sign and does not fit."""

    @property
    def usage(self) -> str:
        """How it stands in a line of usage."""
        return f"[{self.shown}]" if self.shown else ""

    def take(self, text: str, _context: Context) -> tuple[Any, str]:
        """Its value, and what is left of the line."""
        match = re.match(rf"{self.pattern}(?:\s+|\Z)", text)
        if match is not None:
            return self.parse(match[1]), text[match.end() :]
        if self.wrong and text.startswith("!"):
            raise GrammarError(self.wrong)
        return None, text


def priority(low_to_high: str = r"-?\d{1,6}", wrong: str = "") -> Prefix:
    """`!N` before a text."""
    return Prefix("priority", rf"!\s*({low_to_high})", "!PRIORITY", int, wrong=wrong)


@dataclass(frozen=True, slots=True)
class Flag:
    """An option before the arguments: `--seed N`, `--apply`; `--` ends the options."""

    name: str
    shown: str = ""
    """What stands for its value; empty where it takes none."""
    offers: Choices = no_choices
    hidden: bool = False
    """Whether usage leaves it out."""
    behind: bool = False
    """Whether it may stand behind the arguments, too."""

    @property
    def usage(self) -> str:
        """How it stands in a line of usage."""
        return "" if self.hidden else f"[{f'--{self.name} {self.shown}'.rstrip()}]"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting behind the arguments: `for=AGENT`, `given="many words"`."""

    name: str
    shown: str
    offers: Choices = no_choices

    @property
    def usage(self) -> str:
        """How it stands in a line of usage."""
        return f"[{self.name}={self.shown}]"


def parse(arguments: Sequence[Argument], text: str, context: Context) -> dict[str, Any]:
    """The values of a line's arguments, by their names.

    Raises:
        GrammarError: one is missing, wrong or too much; the message says which.
    """
    flags = {argument.name: argument for argument in arguments if isinstance(argument, Flag)}
    settings = [argument.name for argument in arguments if isinstance(argument, Setting)]
    values: dict[str, Any] = {}
    if flags:
        given, text = _take_flags(text, flags)
        values |= {name.replace("-", "_"): given.get(name) for name in flags}
    if settings:
        text, written = split_settings(text, settings)
        values |= {name: written.get(name) for name in settings}
    what = ""
    for argument in arguments:
        if isinstance(argument, Word | Prefix):
            values[argument.name], text = argument.take(text, context)
            what = argument.what if isinstance(argument, Word) else what
    if text:
        lead = f"only {what} is expected" if what else "nothing follows this word"
        raise GrammarError(f"{lead}; '{text[:40]}' is too much")
    return values


_OPTION = re.compile(r"--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|\Z)")


def _take_flags(rest: str, flags: Mapping[str, Flag]) -> tuple[dict[str, Any], str]:
    """The options, and the arguments as they stand."""
    given: dict[str, Any] = {}
    rest = _brought_forward(rest, flags)
    while rest.startswith("--"):
        if re.match(r"--(\s|\Z)", rest):
            return given, rest[2:].strip()
        match = _OPTION.match(rest)
        if match is None or match[1] not in flags:
            known = " ".join(f"--{flag.name} {flag.shown}".rstrip() for flag in flags.values())
            raise GrammarError(f"'{split_word(rest)[0][:40]}' is no option here; options: {known}")
        name, value, rest = match[1], match[2], rest[match.end() :]
        if name in given:
            raise GrammarError(f"--{name} is given twice")
        if not flags[name].shown:
            if value is not None:
                raise GrammarError(f"--{name} takes no value")
            given[name] = True
            continue
        if value is None:
            value, _, rest = split_word(rest)
            rest = rest.strip()
        if not value:
            raise GrammarError(f"--{name} needs a value: --{name} {flags[name].shown}")
        given[name] = value
    return given, rest


def _brought_forward(rest: str, flags: Mapping[str, Flag]) -> str:
    """The line with the options that stand behind its arguments before them."""
    if not any(flag.behind for flag in flags.values()):
        return rest
    valued = "|".join(name for name, flag in flags.items() if flag.shown) or "(?!)"
    match = re.match(
        rf"(?!(?:.*\s)?--\s)(?P<front>\S.*?)(?P<behind>(?:\s+--(?:(?:{valued})[= ]\S+|\S+))*)\s*\Z",
        rest,
        re.S,
    )
    return f"{match['behind'].strip()} {match['front']}" if match is not None and match["behind"] else rest


_SETTING = re.compile(r"""(?<!\S)([a-z]+)=("[^"]*"|'[^']*'|[^\s"']+)\Z""", re.I)
_UNREAD = re.compile(r"""(?<!\S)(given|sources)=["'{\[][^\n]*\Z""", re.I)


def split_settings(rest: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """A line without the settings behind it, `name=value` or `name="many words"`, and these.

    Raises:
        GrammarError: a value is not in quotes and cannot be read.
    """
    settings: dict[str, str] = {}
    rest = rest.strip()
    while (match := _SETTING.search(rest)) is not None and match[1].lower() in names:
        value = match[2]
        settings.setdefault(match[1].lower(), value[1:-1] if value[0] in "\"'" else value)
        rest = rest[: match.start()].rstrip()
    if (unread := _UNREAD.search(rest)) is not None:
        name = unread[1].lower()
        raise GrammarError(f"{name}= cannot be read: put its value in quotes, {name}='…' or {name}=\"…\"")
    return rest, settings


# ------------------------------------------------------------------ kinds of words


def matching(pattern: str, wrong: str, read: Callable[[str], Any] = str) -> Parse:
    """Reads a text that fits a pattern; `{}` in the refusal stands for what was typed."""

    def parse(text: str, _context: Context) -> Any:
        if not re.fullmatch(pattern, text):
            raise GrammarError(wrong.format(text[:40]))
        return read(text)

    return parse


def among(options: Collection[str] | Mapping[str, Any], wrong: str, *, lower: bool = False) -> Parse:
    """Reads one of a few words, on request in any case, or what it stands for.

    `{}` in the refusal stands for what was typed.
    """

    def parse(text: str, _context: Context) -> Any:
        text = text.lower() if lower else text
        if text not in options:
            raise GrammarError(wrong.format(text[:40]))
        return options[text] if isinstance(options, Mapping) else text

    return parse


def only_choice(offers: Choices, wrong: str) -> Callable[[Context], str]:
    """What is meant where an argument is left out: the only choice; `{}` stands for those there are."""

    def default(context: Context) -> str:
        known = [ident for ident, _ in offers(context)]
        if len(known) != 1:
            raise GrammarError(wrong.format(", ".join(known) or "none"))
        return known[0]

    return default


def lower(text: str, _context: Context) -> str:
    """The text in small letters."""
    return text.lower()


def json_value(text: str, what: str = "this is no JSON") -> Any:
    """A value written as JSON.

    Raises:
        GrammarError: it is none; the message says where.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise GrammarError(f"{what}: column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"{what}: {error}") from None


def json_object(text: str, _context: Context) -> dict[str, Any]:
    """Arguments written as a JSON object."""
    value = json_value(text, "the arguments are no JSON")
    if not isinstance(value, dict):
        raise GrammarError("the arguments are a JSON object")
    return value


def read_goal_id(text: str, context: Context) -> str:
    """A goal's id; `this` or nothing means the goal that is pursued, else the first open one.

    Raises:
        GrammarError: none is named, and none is open.
    """
    state = context.state
    if text in ("", "this", "."):
        if state is None or not state.open_goals:
            raise GrammarError("a goal is missing, and none is open")
        pursued = state.goal
        return pursued.id if pursued and not pursued.status.terminal else state.open_goals[0].id
    return text.lower() if text[0] in "gG" else f"g{text}"


def read_step_id(text: str, context: Context) -> str:
    """A step's id; `this` or nothing means the step that would run next.

    Raises:
        GrammarError: none is named, and none is pending.
    """
    state = context.state
    if text in ("", "this", "."):
        if state is None or state.step is None:
            raise GrammarError("a step is missing, and no step is pending")
        return state.step.id
    return text.lower() if text[0] in "sS" else f"s{text}"


def goal_id(name: str = "goal", *, optional: bool = False) -> Word:
    """A goal; left out the one that is pursued."""
    return Word(
        name, "a goal", optional, "GOAL", read_goal_id, open_goals, lambda context: read_goal_id("", context)
    )


def step_id(name: str = "step", *, optional: bool = False) -> Word:
    """A step of the plan; left out the one that would run next."""
    return Word(
        name, "a step", optional, "STEP", read_step_id, open_steps, lambda context: read_step_id("", context)
    )


def open_steps(context: Context) -> list[tuple[str, str]]:
    """The steps that have not run."""
    plan = context.state.plan if context.state else None
    return [(step.id, step.description) for step in plan.steps if not step.status.terminal] if plan else []


def open_goals(context: Context) -> list[tuple[str, str]]:
    """The goals that are open."""
    return [(goal.id, goal.text) for goal in context.state.open_goals] if context.state else []


def listed(pick: Callable[[Context], Iterable[str]], about: str = "") -> Choices:
    """Names from the context, each with the same word about it."""
    return lambda context: [(name, about) for name in pick(context)]


agent_names = listed(lambda context: context.agents, "agent")


REASON = Rest("reason", "a reason", optional=True)
