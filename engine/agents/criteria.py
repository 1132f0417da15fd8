"""Criteria: what an output must satisfy, from a closed registry (ontology spec §1.6).

All are pure functions of the answer. Of `llm_rubric` nothing can be said here: a model judges it, and its
verdict is looked at with the rest (`engine.agents.rubrics`). A criterion that cannot be applied (arguments
missing, no such field) fails and says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from engine.agents.kinds import Check
from engine.agents.result import GateOutcome
from engine.agents.rubrics import Rubric, RubricVerdict, outcome
from engine.agents.spec import Criterion

PATTERN_LIMIT = 2_000
TEXT_LIMIT = 200_000
OVERLAP = 0.6
"""Share of words in common from which two texts are near copies."""


LOG = "log"
"""What `cites_resolve` may say as `of`: the field's values are ids of the run's own log, not citations."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at."""

    text: str = ""
    """The output."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The structured answer by field."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """What can be cited, by id, with its text."""
    log: frozenset[str] = frozenset()
    """What the run itself found: ids of its actions that succeeded, and names of what it was given."""
    verdicts: Mapping[Rubric, RubricVerdict] = field(default_factory=dict)
    """What a model said of rubrics."""


@dataclass(frozen=True, slots=True)
class _Said:
    passed: bool
    measured: str = ""
    wanted: str = ""


class _UnfitError(ValueError):
    """A criterion cannot be applied; the message says why."""


def check_all(criteria: Iterable[Criterion], subject: Subject) -> tuple[GateOutcome, ...]:
    """Every criterion's outcome, in their order; all are looked at."""
    return tuple(check(criterion, subject) for criterion in criteria)


def check(criterion: Criterion, subject: Subject) -> GateOutcome:
    """The outcome of one criterion."""
    if criterion.check is Check.LLM_RUBRIC:
        return outcome(criterion, subject.verdicts)
    try:
        said = _CHECKS[criterion.check](_Look(criterion, subject))
    except _UnfitError as error:
        said = _Said(False, str(error))
    where = criterion.field or "output"
    message = (
        ""
        if said.passed
        else criterion.message or f"{where}: {criterion.check}: {said.measured}".rstrip(": ")
    )
    return GateOutcome(
        check=criterion.check,
        passed=said.passed,
        hard=criterion.hard,
        wanted=said.wanted,
        measured=said.measured,
        message=message,
    )


def failed(outcomes: Iterable[GateOutcome], *, hard: bool = True) -> tuple[GateOutcome, ...]:
    """Those that were not passed, hard ones or soft ones; what nothing could be said of is none of them."""
    return tuple(one for one in outcomes if one.passed is False and one.hard is hard)


def unjudged(outcomes: Iterable[GateOutcome]) -> tuple[GateOutcome, ...]:
    """Hard ones of which nothing could be said: neither passed nor failed, so a person decides."""
    return tuple(one for one in outcomes if one.passed is None and one.hard)


def fault(outcome: GateOutcome) -> str:
    """A criterion that failed, with what was measured where its own words do not say it."""
    said, measured = outcome.message, outcome.measured
    return f"{said} ({measured})" if measured and measured not in said else said


class _Look:
    """A criterion with what it looks at."""

    def __init__(self, criterion: Criterion, subject: Subject) -> None:
        self.args = criterion.args
        self.subject = subject
        self.path = criterion.field
        self.name = criterion.field or "output"

    def value(self) -> Any:
        return look(self.subject, self.path)

    def items(self) -> list[Any]:
        found = self.value()
        if found is None:
            return []
        if isinstance(found, Mapping):
            return list(found)
        return list(found) if isinstance(found, list | tuple) else [found]

    def texts(self) -> list[str]:
        """Every text that is looked at."""
        found = self.value()
        return [words(one) for one in found] if isinstance(found, list | tuple) else [words(found)]

    def number(self, name: str) -> float:
        given = self.args.get(name)
        try:
            return float(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise _UnfitError(f"the criterion needs a number as {name!r}") from None

    def strings(self, name: str) -> list[str]:
        given = self.args.get(name, ())
        if isinstance(given, str):
            return [given]
        if not isinstance(given, list | tuple):
            raise _UnfitError(f"the criterion needs a list as {name!r}")
        return [str(one) for one in given]


def look(subject: Subject, path: str) -> Any:
    """The value at a path such as `jobs[].statement` or `pillars.people.score`; an empty path is the output.

    None where there is none; `[]` gives a list of what stands in each.
    """
    if not path:
        return subject.text
    found: Any = subject.data
    for part in path.split("."):
        name, each = part.removesuffix("[]"), part.endswith("[]")
        if isinstance(found, list):
            found = [one.get(name) if isinstance(one, Mapping) else None for one in found]
            if each:
                found = [item for one in found if isinstance(one, list | tuple) for item in one]
        else:
            found = found.get(name) if isinstance(found, Mapping) else None
            found = list(found) if each and isinstance(found, list | tuple) else found
    return found


def words(value: Any) -> str:
    """A value as text."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "\n".join(words(one) for one in value.values())
    return "\n".join(map(words, value)) if isinstance(value, list | tuple) else str(value)


def count_words(text: str) -> int:
    """Words between white space."""
    return len(text.split())


def overlap(one: str, other: str) -> float:
    """The share of words that two texts have in common, of all that either has."""
    left, right = set(re.findall(r"\w+", one.casefold())), set(re.findall(r"\w+", other.casefold()))
    return len(left & right) / len(left | right) if left | right else 1.0


def plain(text: str) -> str:
    """A text with its white space made single, as quotes are compared."""
    return " ".join(text.split())


# ------------------------------------------------------------------ the checks


def _non_empty(at: _Look) -> _Said:
    found = at.value()
    if isinstance(found, list | tuple):
        empty = sum(not words(one).strip() for one in found)
        return _Said(
            bool(found) and not empty, f"{empty} of {len(found)} empty" if found else "nothing", "something"
        )
    return _Said(bool(words(found).strip()), "nothing" if not words(found).strip() else "", "something")


def _items(at: _Look, pick: Callable[[Iterable[int]], int]) -> int:
    found = at.items()
    if at.args.get("each"):
        return pick([len(one) if isinstance(one, list | tuple) else 0 for one in found] or [0])
    if key := at.args.get("distinct"):
        values = [one.get(str(key)) if isinstance(one, Mapping) and key is not True else one for one in found]
        return len({words(value).casefold() for value in values})
    return len(found)


def _min_items(at: _Look) -> _Said:
    n, least = _items(at, min), at.number("n")
    return _Said(n >= least, f"{n} < {least:g}" if n < least else f"{n}", f"at least {least:g}")


def _max_items(at: _Look) -> _Said:
    n, most = _items(at, max), at.number("n")
    return _Said(n <= most, f"{n} > {most:g}" if n > most else f"{n}", f"at most {most:g}")


def _min_words(at: _Look) -> _Said:
    n, least = min(map(count_words, at.texts()), default=0), at.number("n")
    return _Said(
        n >= least, f"{n} < {least:g} words" if n < least else f"{n} words", f"at least {least:g} words"
    )


def _max_words(at: _Look) -> _Said:
    n, most = max(map(count_words, at.texts()), default=0), at.number("n")
    return _Said(n <= most, f"{n} > {most:g} words" if n > most else f"{n} words", f"at most {most:g} words")


def _regex(at: _Look) -> _Said:
    pattern = str(at.args.get("pattern", ""))
    if not pattern or len(pattern) > PATTERN_LIMIT:
        raise _UnfitError(f"the criterion needs a pattern of up to {PATTERN_LIMIT:,} characters")
    try:
        compiled = re.compile(pattern, re.IGNORECASE if at.args.get("ignore_case") else 0)
    except re.error as error:
        raise _UnfitError(f"the pattern is no regular expression: {error}") from None
    texts = [text[:TEXT_LIMIT] for text in at.texts()]
    found = [compiled.search(text) is not None for text in texts]
    if at.args.get("absent"):
        return _Said(not any(found), f"{sum(found)} match what must not be there", f"no match of {pattern}")
    return _Said(bool(texts) and all(found), f"{len(texts) - sum(found)} do not match", f"matches {pattern}")


_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$|^\*\*(.+?)\*\*:?\s*$", re.M)


def _sections_in_order(at: _Look) -> _Said:
    wanted = at.strings("sections")
    text = words(at.value())
    titles = [(one[0] or one[1]).casefold().strip(" :") for one in _HEADING.findall(text)]
    place = 0
    for name in wanted:
        here = next((i for i, title in enumerate(titles[place:], place) if name.casefold() in title), None)
        if here is None:
            return _Said(False, f"{name!r} is missing or out of order", " → ".join(wanted))
        place = here + 1
    return _Said(True, "", " → ".join(wanted))


def _json_schema(at: _Look) -> _Said:
    import jsonschema  # a criterion that few agents have

    schema = at.args.get("schema")
    if not isinstance(schema, Mapping):
        raise _UnfitError("the criterion needs a JSON Schema as 'schema'")
    found = at.value() if at.path else dict(at.subject.data)
    try:
        jsonschema.validate(found, dict(schema))
    except jsonschema.ValidationError as error:
        return _Said(False, f"{error.json_path}: {error.message}"[:300], "the schema")
    except jsonschema.SchemaError as error:
        raise _UnfitError(f"the schema is none: {error.message}") from None
    return _Said(True, "", "the schema")


def _number_range(at: _Look) -> _Said:
    low, high = at.number("low"), at.number("high")
    wanted = f"from {low:g} to {high:g}"
    for one in at.items():
        if isinstance(one, bool) or not isinstance(one, int | float):
            return _Said(False, f"{words(one)[:40]!r} is no number", wanted)
        if not low <= one <= high:
            return _Said(False, f"{one:g}", wanted)
    return _Said(bool(at.items()), "" if at.items() else "nothing", wanted)


def _sum_equals(at: _Look) -> _Said:
    named = at.strings("fields")
    parts = [look(at.subject, name) for name in named] if named else at.items()
    given = at.args.get("equals")
    total = look(at.subject, given) if isinstance(given, str) else given
    numbers = [one for one in (*parts, total) if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(numbers) != len(parts) + 1:
        raise _UnfitError("the parts and their sum must be numbers")
    found = float(sum(numbers[:-1]))
    return _Said(abs(found - numbers[-1]) < 1e-9, f"{found:g}, not {numbers[-1]:g}", f"{numbers[-1]:g}")


def _one_of(at: _Look) -> _Said:
    values = at.strings("values")
    if named := str(at.args.get("values_from", "")):
        values += [line.strip(" -*•") for line in words(look(at.subject, named)).splitlines() if line.strip()]
    if at.args.get("inside"):
        said = words(at.value()).casefold()
        return _Said(any(one.casefold() in said for one in values), "names none of them", " | ".join(values))
    wrong = [words(one) for one in at.items() if words(one) not in values]
    return _Said(bool(at.items()) and not wrong, ", ".join(wrong)[:200] or "nothing", " | ".join(values))


def _unique(at: _Look) -> _Said:
    fields = at.strings("fields")
    key = str(at.args.get("key", ""))
    values = [look(at.subject, name) for name in fields] if fields else at.items()
    texts = [words(one.get(key) if key and isinstance(one, Mapping) else one) for one in values]
    most = float(at.args.get("overlap", 1.0))
    for one, other in combinations(texts, 2):
        if plain(one).casefold() == plain(other).casefold() or overlap(one, other) >= most:
            return _Said(
                False, f"near copies: {plain(one)[:60]!r} and {plain(other)[:60]!r}", "all different"
            )
    return _Said(True, "", "all different")


_CITE = re.compile(r"\[([A-Za-z][\w.:-]{0,63})\]")


def _cites_resolve(at: _Look) -> _Said:
    if at.args.get("of") == LOG:
        return _in_log(at)
    known = set(at.strings("values")) or set(at.subject.sources)
    least = float(at.args.get("least", 1))
    texts = at.texts()
    cited = [set(_CITE.findall(text)) for text in texts]
    if unknown := sorted(set().union(*cited) - known):
        return _Said(False, f"[{unknown[0]}] is no source", "every citation names a source")
    fewest = min((len(one) for one in cited), default=0)
    return _Said(fewest >= least, f"{fewest} cited", f"at least {least:g} cited")


def _in_log(at: _Look) -> _Said:
    wanted = "each is an action of this run, or was given to it"
    named = [plain(words(one)) for one in at.items()]
    unknown = [one for one in named if one not in at.subject.log]
    if unknown:
        return _Said(False, f"{unknown[0][:80]!r} is no action of this run and was not given to it", wanted)
    return _Said(bool(named), "" if named else "nothing", wanted)


def needs_log(criteria: Iterable[Criterion]) -> bool:
    """Whether one of the criteria looks at what the run itself found."""
    return any(one.check is Check.CITES_RESOLVE and one.args.get("of") == LOG for one in criteria)


def _quote_in_source(at: _Look) -> _Said:
    for index, one in enumerate(at.items()):
        quote, source = (one.get("quote"), one.get("source")) if isinstance(one, Mapping) else (one, None)
        if not quoted(words(quote), at.subject.sources, str(source) if source else None):
            return _Said(
                False,
                f"[{index}] {words(quote)[:80]!r} is not in its source",
                "quotes stand in their sources",
            )
    return _Said(
        bool(at.items()), "nothing is quoted" if not at.items() else "", "quotes stand in their sources"
    )


def quoted(quote: str, sources: Mapping[str, str], source: str | None = None) -> bool:
    """Whether a quote occurs word for word in its source, or in any where none is named."""
    wanted = plain(quote)
    if not wanted:
        return False
    texts: Sequence[str] = [sources.get(source, "")] if source is not None else list(sources.values())
    return any(wanted in plain(text) for text in texts)


_PLACEHOLDER = re.compile(
    r"\b(TODO|TBD|FIXME|XXX|lorem ipsum)\b|\[(insert|your|add|fill in|placeholder)\b[^\]]*\]|\{\{[^}]*\}\}|"
    r"<(insert|your|placeholder)\b[^>]*>",
    re.IGNORECASE,
)


def _no_placeholder(at: _Look) -> _Said:
    found = _PLACEHOLDER.search(words(at.value()))
    return _Said(found is None, found.group()[:60] if found else "", "nothing left to fill in")


def question_count(text: str) -> int:
    """Questions in a text: question marks that end something; several in a row are one."""
    return len(re.findall(r"!*[?？][?？!]*(?=[\s\"'”’)\]*_]|$)", text))


def _question_count(at: _Look) -> _Said:
    n, wanted = question_count(words(at.value())), at.number("n")
    return _Said(n == wanted, f"{n} questions", f"exactly {wanted:g}")


_CHECKS: dict[Check, Callable[[_Look], _Said]] = {
    Check.NON_EMPTY: _non_empty,
    Check.MIN_ITEMS: _min_items,
    Check.MAX_ITEMS: _max_items,
    Check.MIN_WORDS: _min_words,
    Check.MAX_WORDS: _max_words,
    Check.REGEX: _regex,
    Check.SECTIONS_IN_ORDER: _sections_in_order,
    Check.JSON_SCHEMA: _json_schema,
    Check.NUMBER_RANGE: _number_range,
    Check.SUM_EQUALS: _sum_equals,
    Check.ONE_OF: _one_of,
    Check.UNIQUE: _unique,
    Check.CITES_RESOLVE: _cites_resolve,
    Check.QUOTE_IN_SOURCE: _quote_in_source,
    Check.NO_PLACEHOLDER: _no_placeholder,
    Check.QUESTION_COUNT: _question_count,
}
