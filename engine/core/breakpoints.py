"""Breakpoints of any agent: what is watched for, how it is written, and how often it came.

A breakpoint on a step or an action holds right before it; any other holds before whatever would come next.
An operator writes `belief tests_green true->false when failures > 2 after 3 once`. Values, commands, events.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import Field

from engine.core.command import Command
from engine.core.conditions import ConditionError, read_condition
from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason
from engine.value import dataclass


class SetBreakpoint(Command, do="set_breakpoint"):
    """Hold the agent before a step, or no longer."""

    step: str
    on: bool = True


class BreakOn(Command, do="break_on"):
    """Hold a reasoner where a belief, goal, plan or error comes up."""

    on: Literal["step", "belief", "goal", "plan", "error"]
    pattern: str = Field(min_length=1, max_length=1_000)
    """An action, belief or goal with variables, the label of a plan, or an error id."""


class SetBreak(Command, do="set_break"):
    """Hold an agent where something comes; see `engine.core.breakpoints`."""

    line: str = Field(min_length=1, max_length=1_000)
    """Such as `tool write path=*.toml when failures > 2 after 3 once`."""


class ChangeBreak(Command, do="change_break"):
    """Switch a breakpoint on or off, or clear it."""

    breakpoint: str
    enabled: bool = True
    cleared: bool = False


class SetTracing(Command, do="set_tracing"):
    """Journal every change of beliefs, events and intentions, or no longer."""

    on: bool


BREAKPOINTS_KEPT = 50
"""Breakpoints that an agent may have."""


class BreakKind(StrEnum):
    """What a breakpoint watches for."""

    STEP = "step"
    """A step of a plan is about to run."""
    TOOL = "tool"
    """A tool is about to be called, with its arguments as they are settled."""
    GOAL = "goal"
    """A goal is adopted or ends."""
    PLAN = "plan"
    """A plan is adopted, or the agent revises one."""
    BELIEF = "belief"
    """A belief comes, changes or goes."""
    ERROR = "error"
    """Something goes wrong and is classified."""
    RESULT = "result"
    """An action has ended with this to show."""
    SPEND = "spend"
    """Models have taken so much, for a goal or in all."""
    EVERY = "every"
    """So many actions have ended: the leash."""
    INTENTION = "intention"
    """An intention of a reasoner is suspended or ends."""


@dataclass(frozen=True, slots=True)
class BreakSpec:
    """What is watched for; which fields count depends on the kind."""

    kind: BreakKind
    subject: str = ""
    """What it is about: a step, `tool.command`, goal, belief key, failure kind, intention; empty is any."""
    change: str = ""
    """What happens to it, such as `adopted` or `removed`; empty is anything."""
    args: tuple[tuple[str, str], ...] = ()
    """Of a tool: patterns of arguments by name."""
    old: str = ""
    new: str = ""
    """Of a belief: patterns of its value before and after; `none` where there is none, empty is any."""
    text: str = ""
    """Of a result: what it shows somewhere."""
    exit: int | None = None
    """Of a result: the exit status."""
    usd: float | None = None
    tokens: int | None = None
    """Of spend: the limit that is reached."""
    when: str = ""
    """A condition that has to hold as well (`engine.core.conditions`)."""
    after: int = 1
    """The time it comes at which it holds first; of `every` the number of actions between two."""
    once: bool = False
    """Whether it is switched off when it has held."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """One breakpoint of an agent, as its events have it."""

    id: str
    spec: BreakSpec
    enabled: bool = True
    stopped: int = 0
    """How often it held the agent."""
    event: str = ""
    """The event that set or last changed it."""
    last: str = ""
    """The event at which it held last."""
    at: str = ""
    """The action or step before which it held last, which may run then."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A breakpoint that has come and not held yet."""

    breakpoint: str
    what: Reason
    """What happened; made of what agents and tools said."""
    event: str


LONGEST = 1_000
"""Characters of a breakpoint."""
ARGUMENTS = 10
"""Patterns of arguments that a breakpoint on a tool has at most."""
MOST_TIMES = 1_000_000

USAGE: dict[BreakKind, tuple[str, str, str]] = {}
for _line in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines():
    _kind, _usage, _what, _example = re.split(r"\s{2,}", _line)
    USAGE[BreakKind(_kind)] = _usage, _what, _example
"""Of each kind: how it is written, when it holds, and an example."""

_CHANGES = {
    BreakKind.GOAL: ("adopted", "achieved", "failed", "dropped", "ended"),
    BreakKind.PLAN: ("adopted", "revised"),
    BreakKind.BELIEF: ("added", "changed", "removed"),
    BreakKind.INTENTION: ("suspended", "finished", "dropped"),
}
_WORD = re.compile(r"(?:[^\s\"']|\"[^\"]*\"|'[^']*')+")
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_PLAIN = re.compile(r"[^\s\"']+")


class BreakError(ValueError):
    """The line says no breakpoint; the message says what is wrong and how to write it."""


def read_break(line: str) -> BreakSpec:
    """A breakpoint from its line.

    Raises:
        BreakError: it is none.
    """
    if len(line) > LONGEST:
        raise BreakError(f"a breakpoint has at most {LONGEST} characters, not {len(line)}")
    if not line.isprintable():
        raise BreakError("a breakpoint is one line without control characters")
    raw = _split(line)
    if not raw or raw[0] not in set(BreakKind):
        named = f"'{raw[0][:20]}' is no kind of breakpoint" if raw else "the kind is missing"
        raise BreakError(f"{named}; kinds: {', '.join(BreakKind)}")
    kind = BreakKind(raw[0])
    body, when, after, once = _tail(raw[1:])
    spec = _READERS[kind](kind, body)
    if kind is BreakKind.EVERY:
        if after != 1:
            raise BreakError("'after' says nothing for every: give the number, such as every 10")
        after = spec.after
    return replace(spec, when=when, after=after, once=once)


def write_break(spec: BreakSpec) -> str:
    """The line of a breakpoint; `read_break` gives the same one again."""
    words: list[str] = [spec.kind.value]
    match spec.kind:
        case BreakKind.RESULT:
            words += ["in", _quote(spec.subject)] if spec.subject else []
            words += [_quote(spec.text)] if spec.text else []
            words += ["exit", str(spec.exit)] if spec.exit is not None else []
        case BreakKind.EVERY:
            words.append(str(spec.after))
        case BreakKind.SPEND:
            words += [spec.subject] if spec.subject else []
            words += [f"${spec.usd!r}"] if spec.usd is not None else [str(spec.tokens), "tokens"]
        case BreakKind.BELIEF:
            words += [_quote(spec.subject), spec.change]
            words += [f"{_quote(spec.old)}->{_quote(spec.new)}"] if spec.old or spec.new else []
        case _:
            words += [spec.change, *([_quote(spec.subject)] if spec.subject else [])]
            words += [f"{name}={_quote(pattern)}" for name, pattern in spec.args]
    words += [f"when {spec.when}"] if spec.when else []
    words += [f"after {spec.after}"] if spec.after != 1 and spec.kind is not BreakKind.EVERY else []
    words += ["once"] if spec.once else []
    return " ".join(word for word in words if word)


def _split(line: str) -> list[str]:
    """The words as they are written, quotes included."""
    if _WORD.sub("", line).strip():
        raise BreakError("a quote is not closed")
    return _WORD.findall(line)


def _plain(word: str) -> str:
    """A word without its quotes."""
    return _QUOTED.sub(lambda found: found[1] if found[1] is not None else found[2], word)


def _quote(text: str) -> str:
    """A text as one word."""
    if text and _PLAIN.fullmatch(text) and text not in _RESERVED and "->" not in text:
        return text
    if '"' not in text:
        return f'"{text}"'
    return "'\"'".join(f'"{part}"' if part else "" for part in text.split('"')) or '""'


_RESERVED = {"when", "after", "once", "in", "exit", "tokens"}.union(*_CHANGES.values())


def _tail(raw: list[str]) -> tuple[list[str], str, int, bool]:
    """What comes before the options; then condition, hit count, and whether it holds once only."""
    once, after = False, 1
    while raw:
        if raw[-1] == "once" and not once:
            once, raw = True, raw[:-1]
        elif len(raw) > 1 and raw[-2] == "after" and after == 1:
            after, raw = _number(raw[-1], "after"), raw[:-2]
        else:
            break
    if "when" not in raw:
        return raw, "", after, once
    at = raw.index("when")
    when = " ".join(raw[at + 1 :])
    try:
        read_condition(when)
    except ConditionError as error:
        raise BreakError(f"when: {error}") from None
    return raw[:at], when, after, once


def _number(word: str, what: str) -> int:
    if not (word.isascii() and word.isdigit()) or not 1 <= int(word[:9]) <= MOST_TIMES or len(word) > 7:
        raise BreakError(f"{what}: a number from 1 to {MOST_TIMES:,} is expected, not '{word[:20]}'")
    return int(word)


def _wrong(kind: BreakKind, why: str) -> BreakError:
    usage, _, example = USAGE[kind]
    return BreakError(f"{why}: {kind} {usage}, such as {kind} {example}")


def _one(kind: BreakKind, words: list[str], *, empty: bool = False) -> str:
    if len(words) > 1 or not (words or empty):
        raise _wrong(kind, "one word is expected" if words else "it is not said which")
    return _plain(words[0]) if words else ""


def _about(kind: BreakKind, words: list[str]) -> BreakSpec:
    """What happens, and to what, in any order; both may be left out."""
    change = ""
    if words and words[0] in _CHANGES[kind]:
        change, words = words[0], words[1:]
    elif words and words[-1] in _CHANGES[kind]:
        change, words = words[-1], words[:-1]
    return BreakSpec(kind, _plain(" ".join(words)), change=change)


def _step(kind: BreakKind, words: list[str]) -> BreakSpec:
    subject = _plain(" ".join(words)) or _one(kind, words)
    return BreakSpec(kind, subject.lower() if re.fullmatch(r"[sS]\d+", subject) else subject)


def _tool(kind: BreakKind, words: list[str]) -> BreakSpec:
    if not words or "=" in words[0]:
        raise _wrong(kind, "it is not said which call")
    subject, *given = words
    if len(given) > ARGUMENTS:
        raise BreakError(f"at most {ARGUMENTS} arguments are compared, not {len(given)}")
    args: list[tuple[str, str]] = []
    for word in given:
        name, is_given, pattern = word.partition("=")
        if not is_given or not name.isidentifier():
            raise _wrong(kind, f"'{word[:20]}' is no NAME=PATTERN")
        args.append((name, _plain(pattern)))
    return BreakSpec(kind, _plain(subject), args=tuple(args))


def _belief(kind: BreakKind, words: list[str]) -> BreakSpec:
    if not words:
        raise _wrong(kind, "it is not said which")
    key, *rest = words
    change = rest.pop(0) if rest and rest[0] in _CHANGES[kind] else ""
    old = new = ""
    if rest:
        old, arrow, new = " ".join(rest).partition("->")
        if not arrow or len(_split(old)) > 1 or len(_split(new)) > 1:
            raise _wrong(kind, f"'{' '.join(rest)[:40]}' is no OLD->NEW; quote what has blanks")
    return BreakSpec(kind, _plain(key), change=change, old=_plain(old.strip()), new=_plain(new.strip()))


def _error(kind: BreakKind, words: list[str]) -> BreakSpec:
    return BreakSpec(kind, _one(kind, words, empty=True).upper())


def _result(kind: BreakKind, words: list[str]) -> BreakSpec:
    subject, code = "", None
    if len(words) > 1 and words[0] == "in":
        subject, words = _plain(words[1]), words[2:]
    if len(words) > 1 and words[-2] == "exit":
        if not re.fullmatch(r"-?\d{1,3}", words[-1], re.ASCII):
            raise _wrong(kind, f"'{words[-1][:20]}' is no exit status")
        code, words = int(words[-1]), words[:-2]
    text = _plain(" ".join(words))
    if not text and code is None:
        raise _wrong(kind, "it is not said what it shows")
    return BreakSpec(kind, subject, text=text, exit=code)


def _spend(kind: BreakKind, words: list[str]) -> BreakSpec:
    subject = ""
    if words and re.fullmatch(r"[gG]\d{1,9}", words[0], re.ASCII):
        subject, words = words[0].lower(), words[1:]
    amount, unit = (words[0], words[1] if len(words) > 1 else "") if words else ("", "")
    figure = amount.removeprefix("$").replace(",", "").replace("_", "")
    if len(words) > 2 or not re.fullmatch(r"\d{1,12}(?:\.\d{1,9})?", figure, re.ASCII) or not float(figure):
        raise _wrong(kind, "an amount is expected")
    if (amount.startswith("$") and not unit) or unit == "usd":
        return BreakSpec(kind, subject, usd=float(figure))
    if unit not in ("token", "tokens") or "." in figure:
        raise _wrong(kind, "dollars or whole tokens are expected")
    return BreakSpec(kind, subject, tokens=int(figure))


def _every(kind: BreakKind, words: list[str]) -> BreakSpec:
    if words[1:] in (["actions"], ["action"]):
        words = words[:1]
    return BreakSpec(kind, after=_number(_one(kind, words), "every"))


def _intention(kind: BreakKind, words: list[str]) -> BreakSpec:
    spec = _about(kind, words)
    if spec.subject not in ("", "*") and not re.fullmatch(r"\d{1,9}", spec.subject, re.ASCII):
        raise _wrong(kind, f"'{spec.subject[:20]}' is no intention's number")
    return spec


_READERS: dict[BreakKind, Callable[[BreakKind, list[str]], BreakSpec]] = {
    BreakKind.STEP: _step,
    BreakKind.TOOL: _tool,
    BreakKind.GOAL: _about,
    BreakKind.PLAN: _about,
    BreakKind.BELIEF: _belief,
    BreakKind.ERROR: _error,
    BreakKind.RESULT: _result,
    BreakKind.SPEND: _spend,
    BreakKind.EVERY: _every,
    BreakKind.INTENTION: _intention,
}


class BreakpointAdded(Payload, kind="breakpoint.added"):
    """The agent will be held where this comes."""

    breakpoint: str
    spec: BreakSpec


class BreakpointChanged(Payload, kind="breakpoint.changed"):
    """A breakpoint was switched on or off, or cleared."""

    breakpoint: str
    enabled: bool = True
    cleared: bool = False


class BreakpointSet(Payload, kind="breakpoint.set"):
    """The agent will be held before this step."""

    step: str


class BreakpointCleared(Payload, kind="breakpoint.cleared"):
    """The step no longer holds the agent."""

    step: str


class BreakpointHit(Payload, kind="breakpoint.hit"):
    """The agent reached a breakpoint, and starts nothing until it is let continue."""

    step: str = ""
    """The step before which it stands, of a breakpoint on a step alone."""
    breakpoint: str = ""
    """Any other breakpoint; empty for one on a step alone."""
    what: Reason = NONE
    """What came."""
    came: str = ""
    """The event by which it came."""
    at: str = ""
    """The action or step that it stands before and that may run then; empty where it stands between two."""


ON_MIND = ("step", "belief", "goal", "plan", "error")
"""Kinds that of a reasoner are patterns over what its program does."""
