"""Breakpoints: which records of a trace come to where an operator wants the agent held.

Nothing here holds an agent; the host asks after each phase. A record carries its literals as text, which is
read back (some 10 microseconds) only where the functor is that of a pattern. What cannot be read back,
because it nests too deeply, counts as fitting: to hold once too often is better than to pass by. So does a
variable that a goal holds in two places, of which its text says no more than `_`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

from engine.bdi import trace as record
from engine.bdi.beliefs import is_source
from engine.bdi.errors import ErrorId, ProgramError
from engine.bdi.internal_actions import nearest
from engine.bdi.parser import parse_literal, parse_term, parse_trigger
from engine.bdi.printer import atom_text, text_of
from engine.bdi.rewriting import instantiated
from engine.bdi.syntax import is_literal
from engine.bdi.terms import SELF, VARIABLE_LITERAL, Struct, Term, Var
from engine.bdi.trace import Change, TraceEvent
from engine.bdi.unification import annotations_within, unify
from engine.value import dataclass, field

LONGEST = 1_000
"""Characters of a pattern."""


class Kind(StrEnum):
    """What a breakpoint is about."""

    BELIEF = "belief"
    """`obstacle(_)` is added or removed, `+obstacle(_)` added, `-obstacle(_)` removed."""
    GOAL = "goal"
    """`reach(X)` is adopted as any goal, `+!reach(X)` or `+?at(X)` as this kind, `-!reach(X)` fails."""
    PLAN = "plan"
    """A plan with this label is selected; `*`, `?` and `[…]` stand for characters."""
    ERROR = "error"
    """A goal fails with this error id, or a plan that pursues none; `*` is any error."""
    INTENTION = "intention"
    """`7` ends, or `7 suspended` and the other changes; `*` is any intention."""


_Told = Callable[[TraceEvent], str]
"""Words for the operator when a record fits, else nothing."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """One place where to hold.

    Raises:
        ValueError: the pattern is none of its kind; the message says what was expected, and where.
    """

    kind: Kind
    pattern: str
    told: _Told = field(init=False, repr=False, compare=False)
    """Words for the operator when a record fits, else nothing."""

    def __post_init__(self) -> None:
        """Read the pattern."""
        if self.kind not in set(Kind):
            raise ValueError(f"a breakpoint is on a {', '.join(Kind)}, not on a {self.kind}")
        text = self.pattern.strip()
        if len(text) > LONGEST:
            raise ValueError(f"a pattern has at most {LONGEST} characters, not {len(text)}")
        if not text:
            raise ValueError(f"say which {self.kind}, for example {_EXAMPLES[self.kind]}")
        object.__setattr__(self, "told", _READERS[self.kind](text))


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that came to a breakpoint."""

    breakpoint: Breakpoint | None
    """None for a plan whose own label says `[breakpoint]`."""
    record: TraceEvent
    words: str
    """What happened, for the operator; it holds text of the agent's."""


class Breakpoints:
    """Some breakpoints, sorted by the records that may come to them."""

    def __init__(self, breakpoints: Iterable[Breakpoint] = ()) -> None:
        self._by_record: dict[type, list[Breakpoint]] = {}
        for item in breakpoints:
            for kind in _RECORDS[item.kind]:
                self._by_record.setdefault(kind, []).append(item)

    def hits(self, records: Sequence[TraceEvent]) -> list[Hit]:
        """Which records came to which breakpoints, in the order of the records."""
        hits: list[Hit] = []
        failed: set[int] = set()
        for item in records:
            if isinstance(item, record.PlanSelected) and item.breakpoint:
                words = f"plan {item.plan}, labelled [breakpoint], was selected for {item.event}"
                hits.append(Hit(None, item, words))
            for place in self._by_record.get(type(item), ()):
                words = place.told(item)
                if words and not (place.kind is Kind.ERROR and _told_already(item, failed)):
                    hits.append(Hit(place, item, words))
        return hits


def _told_already(item: TraceEvent, failed: set[int]) -> bool:
    """True for an intention that goes because of a goal whose failure was told of."""
    if isinstance(item, record.GoalFailed):
        failed.add(item.intention)
    return isinstance(item, record.IntentionChanged) and item.intention in failed


# ------------------------------------------------------------------ beliefs and goals


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A literal with variables, or a variable alone."""

    literal: Struct | Var
    start: str
    """How the text of each literal with this functor begins; empty where any will do."""

    def fits(self, text: str) -> bool:
        """Whether the literal of this text is one that is meant."""
        end = len(self.start)
        if self.start and not (text.startswith(self.start) and text[end : end + 1] in ("", "(", "[")):
            return False
        if isinstance(self.literal, Var):
            return True
        try:
            result = instantiated(parse_literal(text))
        except ProgramError:
            return True
        term = instantiated(self.literal)
        assert isinstance(result, Struct)
        assert isinstance(term, Struct)
        notes = result.annotations
        if not any(map(is_source, notes)):
            result = result.with_annotations((*notes, SELF))
        if term.functor == VARIABLE_LITERAL:
            return annotations_within(term.annotations, result.annotations, [])
        return unify(term, result, [])


def _read(text: str, kind: Kind, signs: tuple[str, ...]) -> tuple[str, _Pattern]:
    """The sign of a pattern, empty without one, and its literal."""
    try:
        if text[0] in "+-^":
            trigger = parse_trigger(text)
            sign, term = f"{trigger.operation}{trigger.kind}", trigger.literal
        else:
            sign, term = "", _literal(parse_term(text))
    except ProgramError as error:
        problem = error.problems[0]
        where = f"at character {problem.column}" if problem.line == 1 else f"in line {problem.line}"
        raise ValueError(
            f"not a {kind}: expected {problem.expected}, found {problem.found} {where}"
        ) from None
    if sign and sign not in signs:
        expected = ", ".join(signs)
        raise ValueError(f"a {kind} begins with one of {expected} or with its name, not with {sign}")
    if isinstance(term, Var) or term.functor == VARIABLE_LITERAL:
        return sign, _Pattern(term, "")
    return sign, _Pattern(term, f"{'~' if term.negated else ''}{atom_text(term.functor)}")


def _literal(term: Term) -> Struct | Var:
    if isinstance(term, Var) or (isinstance(term, Struct) and is_literal(term)):
        return term
    raise ValueError(f"{text_of(term)} is not a literal; write for example obstacle(_)")


def _belief(text: str) -> _Told:
    sign, pattern = _read(text, Kind.BELIEF, ("+", "-"))

    def told(item: TraceEvent) -> str:
        if isinstance(item, record.BeliefAdded):
            return f"belief +{item.belief} was added" if sign != "-" and pattern.fits(item.belief) else ""
        assert isinstance(item, record.BeliefRemoved)
        return f"belief -{item.belief} was removed" if sign != "+" and pattern.fits(item.belief) else ""

    return told


def _goal(text: str) -> _Told:
    sign, pattern = _read(text, Kind.GOAL, ("+!", "-!", "+?", "-?"))
    adopted = (sign,) if sign else ("+!", "+?")

    def told(item: TraceEvent) -> str:
        if isinstance(item, record.EventQueued):
            is_meant = item.event[:2] in adopted and item.event[0] == "+" and pattern.fits(item.event[2:])
            return f"goal {item.event} was adopted" if is_meant else ""
        assert isinstance(item, record.GoalFailed)
        if sign != f"-{item.kind}" or not pattern.fits(item.goal):
            return ""
        return f"goal {item.kind}{item.goal} failed with {item.error}: {item.message}"

    return told


# ------------------------------------------------------------------ plans, errors, intentions


def _plan(text: str) -> _Told:
    label = text.removeprefix("@")
    if not label:
        raise ValueError(f"say which plan, for example {_EXAMPLES[Kind.PLAN]}")

    def told(item: TraceEvent) -> str:
        assert isinstance(item, record.PlanSelected)
        return f"plan {item.plan} was selected for {item.event}" if fnmatchcase(item.plan, label) else ""

    return told


def _error(text: str) -> _Told:
    if text != "*" and text not in set(ErrorId):
        known = ", ".join(ErrorId)
        raise ValueError(f"there is no error {text}{nearest(text, ErrorId) or f'; there are {known}, and *'}")

    def told(item: TraceEvent) -> str:
        if isinstance(item, record.GoalFailed):
            words = f"goal {item.kind}{item.goal} failed with {item.error}: {item.message}"
            return words if text in ("*", item.error) else ""
        assert isinstance(item, record.IntentionChanged)
        error, _, message = item.reason.partition(": ")
        if item.change is not Change.DROPPED or error not in set(ErrorId) or text not in ("*", error):
            return ""
        return f"intention {item.intention} failed with {error}: {message}"

    return told


_ENDS = (Change.FINISHED, Change.DROPPED)


def _intention(text: str) -> _Told:
    number, *rest = text.split()
    if not (number == "*" or (number.isascii() and number.isdigit())) or len(rest) > 1:
        raise ValueError(f"expected the number of an intention or *, and perhaps a change, found {text}")
    if rest and rest[0] not in set(Change):
        raise ValueError(f"intentions are {', '.join(Change)}, not {rest[0]}")
    changes = (Change(rest[0]),) if rest else _ENDS

    def told(item: TraceEvent) -> str:
        assert isinstance(item, record.IntentionChanged)
        if item.change not in changes or number not in ("*", str(item.intention)):
            return ""
        reason = f": {item.reason}" if item.reason else ""
        return f"intention {item.intention} was {item.change}{reason}"

    return told


_READERS: dict[Kind, Callable[[str], _Told]] = {
    Kind.BELIEF: _belief,
    Kind.GOAL: _goal,
    Kind.PLAN: _plan,
    Kind.ERROR: _error,
    Kind.INTENTION: _intention,
}
_RECORDS: dict[Kind, tuple[type[TraceEvent], ...]] = {
    Kind.BELIEF: (record.BeliefAdded, record.BeliefRemoved),
    Kind.GOAL: (record.EventQueued, record.GoalFailed),
    Kind.PLAN: (record.PlanSelected,),
    Kind.ERROR: (record.GoalFailed, record.IntentionChanged),
    Kind.INTENTION: (record.IntentionChanged,),
}
_EXAMPLES = {
    Kind.BELIEF: "obstacle(_) or +obstacle(north)",
    Kind.GOAL: "reach(X) or -!reach(home)",
    Kind.PLAN: "approach or p__*",
    Kind.ERROR: "no_applicable or *",
    Kind.INTENTION: "7 or 7 suspended",
}
