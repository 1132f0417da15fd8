"""Criteria that an output must satisfy, from a closed registry, as pure functions of the answer.

A rubric (`llm_rubric`) is judged by a model, is never passed by default, and its verdict is looked at with
the rest. A criterion that cannot be applied (arguments missing, no such field) fails and says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from engine.crew.ontology.kinds import Check
from engine.crew.ontology.results import CriterionResult
from engine.crew.ontology.spec import Criterion
from engine.value import dataclass, field

NEEDS_MODEL = "needs a model"


@dataclass(frozen=True, slots=True)
class Rubric:
    """A criterion in words, which a model judges."""

    text: str
    field: str = ""
    """What is looked at; empty is the output."""


@dataclass(frozen=True, slots=True)
class RubricVerdict:
    """What a model says of a rubric."""

    passed: bool | None = None
    """None where it was not judged."""
    reason: str = NEEDS_MODEL
    """Why; of one that was not judged, why not."""
    by: str = ""
    """The model."""

    @property
    def said(self) -> str:
        """The verdict in words."""
        if self.passed is None:
            return f"not judged: {self.reason}"
        return f"{'satisfied' if self.passed else 'not satisfied'} ({self.by}): {self.reason}"


def rubric_of(criterion: Criterion) -> Rubric:
    """What a model judges by."""
    text = str(criterion.args.get("rubric") or criterion.message).strip()
    return Rubric(text or "a rubric", criterion.field)


def rubrics_in(criteria: Iterable[Criterion]) -> tuple[Rubric, ...]:
    """The rubrics among criteria, each once."""
    rubrics = (rubric_of(criterion) for criterion in criteria if criterion.check is Check.LLM_RUBRIC)
    return tuple(dict.fromkeys(rubrics))


def rubric_outcome(criterion: Criterion, verdicts: Mapping[Rubric, RubricVerdict]) -> CriterionResult:
    """What is known of a rubric; nothing can be said where it was not judged."""
    rubric = rubric_of(criterion)
    verdict = verdicts.get(rubric, RubricVerdict())
    measured, message = verdict.said, "" if verdict.passed else criterion.message or rubric.text
    if verdict.passed is None:
        measured, message = "", verdict.said
    return CriterionResult(
        check=criterion.check,
        passed=verdict.passed,
        hard=criterion.hard,
        wanted=rubric.text,
        measured=measured,
        message=message,
    )


PATTERN_LIMIT = 2_000
TEXT_LIMIT = 200_000


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


def check_all(criteria: Iterable[Criterion], subject: Subject) -> tuple[CriterionResult, ...]:
    """Every criterion's outcome, in their order; all are looked at."""
    return tuple(check(criterion, subject) for criterion in criteria)


def check(criterion: Criterion, subject: Subject) -> CriterionResult:
    """The outcome of one criterion."""
    if criterion.check is Check.LLM_RUBRIC:
        return rubric_outcome(criterion, subject.verdicts)
    try:
        finding = _CHECKS[criterion.check](_Look(criterion, subject))
    except _UnfitError as error:
        finding = _Said(False, str(error))
    usual = f"{criterion.field or 'output'}: {criterion.check}: {finding.measured}".rstrip(": ")
    return CriterionResult(
        check=criterion.check,
        passed=finding.passed,
        hard=criterion.hard,
        field=criterion.field or ", ".join(map(str, criterion.args.get("fields") or ())),
        wanted=finding.wanted,
        measured=finding.measured,
        message="" if finding.passed else criterion.message or usual,
    )


def failed(outcomes: Iterable[CriterionResult]) -> tuple[CriterionResult, ...]:
    """Hard ones that were not passed; what nothing could be said of is none of them."""
    return tuple(result for result in outcomes if result.passed is False and result.hard)


def unjudged(outcomes: Iterable[CriterionResult]) -> tuple[CriterionResult, ...]:
    """Hard ones of which nothing could be said: neither passed nor failed, so a person decides."""
    return tuple(result for result in outcomes if result.passed is None and result.hard)


def failure_text(outcome: CriterionResult) -> str:
    """A criterion that failed, with what was measured where its own words do not say it."""
    message, measured = outcome.message, outcome.measured
    return f"{message} ({measured})" if measured and measured not in message else message


def not_passed(outcomes: Sequence[CriterionResult]) -> str:
    """How many of the hard criteria are not passed; `HandoffResult.failures` lists them."""
    hard = sum(result.hard for result in outcomes)
    return f"{len(failed(outcomes))} of {hard} check{'' if hard == 1 else 's'} not passed"


class _Look:
    """A criterion with what it looks at."""

    def __init__(self, criterion: Criterion, subject: Subject) -> None:
        self.args = criterion.args
        self.subject = subject
        self.path = criterion.field
        self.name = criterion.field or "output"

    def value(self) -> Any:
        return value_at(self.subject, self.path)

    def items(self) -> list[Any]:
        value = self.value()
        if value is None:
            return []
        if isinstance(value, Mapping):
            return list(value)
        return list(value) if isinstance(value, list | tuple) else [value]

    def texts(self) -> list[str]:
        """Every text that is looked at."""
        value = self.value()
        return list(map(value_text, value if isinstance(value, list | tuple) else [value]))

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
        return [str(item) for item in given]


_Checker = Callable[[_Look], _Said]
_Pick = Callable[[Iterable[int]], int]
_Counter = Callable[[_Look, _Pick], int]


def value_at(subject: Subject, path: str) -> Any:
    """The value at a path such as `jobs[].statement` or `pillars.people.score`; an empty path is the output.

    None where there is none; `[]` gives a list of what stands in each.
    """
    if not path:
        return subject.text
    value: Any = subject.data
    for part in path.split("."):
        name, each = part.removesuffix("[]"), part.endswith("[]")
        if isinstance(value, list):
            value = [element.get(name) if isinstance(element, Mapping) else None for element in value]
            if each:
                value = [item for element in value if isinstance(element, list | tuple) for item in element]
        else:
            value = value.get(name) if isinstance(value, Mapping) else None
            value = list(value) if each and isinstance(value, list | tuple) else value
    return value


def value_text(value: Any) -> str:
    """A value as text."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "\n".join(value_text(item) for item in value.values())
    return "\n".join(map(value_text, value)) if isinstance(value, list | tuple) else str(value)


def count_words(text: str) -> int:
    """Words between white space."""
    return len(text.split())


def overlap(first: str, other: str) -> float:
    """The share of words that two texts have in common, of all that either has."""
    left, right = set(re.findall(r"\w+", first.casefold())), set(re.findall(r"\w+", other.casefold()))
    return len(left & right) / len(left | right) if left | right else 1.0


def single_spaced(text: str) -> str:
    """A text with its white space made single, as quotes are compared."""
    return " ".join(text.split())


def _non_empty(at: _Look) -> _Said:
    value = at.value()
    if isinstance(value, list | tuple):
        empty = sum(not value_text(item).strip() for item in value)
        measured = f"{empty} of {len(value)} empty" if value else "nothing"
        return _Said(bool(value) and not empty, measured, "something")
    filled = bool(value_text(value).strip())
    return _Said(filled, "" if filled else "nothing", "something")


def _items(at: _Look, pick: _Pick) -> int:
    items = at.items()
    if at.args.get("each"):
        return pick([len(item) if isinstance(item, list | tuple) else 0 for item in items] or [0])
    if key := at.args.get("distinct"):
        named = key is not True
        values = (item.get(str(key)) if named and isinstance(item, Mapping) else item for item in items)
        return len({value_text(value).casefold() for value in values})
    return len(items)


def _bound(counted: _Counter, unit: str, *, least: bool) -> _Checker:
    """A check that a number is at least, or at most, what the criterion says as `n`."""
    rule, sign, pick = ("at least", "<", min) if least else ("at most", ">", max)

    def look(at: _Look) -> _Said:
        n, bound = counted(at, pick), at.number("n")
        passed = n >= bound if least else n <= bound
        measured = f"{n}{unit}" if passed else f"{n} {sign} {bound:g}{unit}"
        return _Said(passed, measured, f"{rule} {bound:g}{unit}")

    return look


def _words(at: _Look, pick: _Pick) -> int:
    return pick([count_words(text) for text in at.texts()] or [0])


def _regex(at: _Look) -> _Said:
    pattern = str(at.args.get("pattern", ""))
    if not pattern or len(pattern) > PATTERN_LIMIT:
        raise _UnfitError(f"the criterion needs a pattern of up to {PATTERN_LIMIT:,} characters")
    try:
        compiled = re.compile(pattern, re.IGNORECASE if at.args.get("ignore_case") else 0)
    except re.error as error:
        raise _UnfitError(f"the pattern is no regular expression: {error}") from None
    texts = [text[:TEXT_LIMIT] for text in at.texts()]
    match_ = [compiled.search(text) is not None for text in texts]
    if at.args.get("absent"):
        return _Said(not any(match_), f"{sum(match_)} match what must not be there", f"no match of {pattern}")
    left = f"{len(texts) - sum(match_)} do not match"
    return _Said(bool(texts) and all(match_), left, f"matches {pattern}")


_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$|^\*\*(.+?)\*\*:?\s*$", re.M)


def _sections_in_order(at: _Look) -> _Said:
    names = at.strings("sections")
    text = value_text(at.value())
    titles = [(match_[0] or match_[1]).casefold().strip(" :") for match_ in _HEADING.findall(text)]
    place = 0
    for name in names:
        here = next((i for i, title in enumerate(titles[place:], place) if name.casefold() in title), None)
        if here is None:
            return _Said(False, f"{name!r} is missing or out of order", " → ".join(names))
        place = here + 1
    return _Said(True, "", " → ".join(names))


def _json_schema(at: _Look) -> _Said:
    import jsonschema  # a criterion that few agents have

    schema = at.args.get("schema")
    if not isinstance(schema, Mapping):
        raise _UnfitError("the criterion needs a JSON Schema as 'schema'")
    value = at.value() if at.path else dict(at.subject.data)
    try:
        jsonschema.validate(value, dict(schema))
    except jsonschema.ValidationError as error:
        return _Said(False, f"{error.json_path}: {error.message}"[:300], "the schema")
    except jsonschema.SchemaError as error:
        raise _UnfitError(f"the schema is none: {error.message}") from None
    return _Said(True, "", "the schema")


def _number_range(at: _Look) -> _Said:
    low, high = at.number("low"), at.number("high")
    span = f"from {low:g} to {high:g}"
    for item in at.items():
        if not _is_number(item):
            return _Said(False, f"{value_text(item)[:40]!r} is no number", span)
        if not low <= item <= high:
            return _Said(False, f"{item:g}", span)
    return _Said(bool(at.items()), "" if at.items() else "nothing", span)


def _sum_equals(at: _Look) -> _Said:
    named = at.strings("fields")
    parts = [value_at(at.subject, name) for name in named] if named else at.items()
    given = at.args.get("equals")
    total: Any = value_at(at.subject, given) if isinstance(given, str) else given
    if not all(_is_number(number) for number in (*parts, total)):
        raise _UnfitError("the parts and their sum must be numbers")
    found = float(sum(parts))
    return _Said(abs(found - total) < 1e-9, f"{found:g}, not {total:g}", f"{total:g}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _one_of(at: _Look) -> _Said:
    values = at.strings("values")
    if named := str(at.args.get("values_from", "")):
        lines = value_text(value_at(at.subject, named)).splitlines()
        values += [line.strip(" -*•") for line in lines if line.strip()]
    wanted = " | ".join(values)
    if at.args.get("inside"):
        text = value_text(at.value()).casefold()
        return _Said(any(value.casefold() in text for value in values), "names none of them", wanted)
    wrong = [value_text(value) for value in at.items() if value_text(value) not in values]
    return _Said(bool(at.items()) and not wrong, ", ".join(wrong)[:200] or "nothing", wanted)


def _unique(at: _Look) -> _Said:
    fields = at.strings("fields")
    key = str(at.args.get("key", ""))
    values = [value_at(at.subject, name) for name in fields] if fields else at.items()
    texts = [value_text(value.get(key) if key and isinstance(value, Mapping) else value) for value in values]
    most = float(at.args.get("overlap", 1.0))
    for value, other in combinations(map(single_spaced, texts), 2):
        if value.casefold() == other.casefold() or overlap(value, other) >= most:
            return _Said(False, f"near copies: {value[:60]!r} and {other[:60]!r}", "all different")
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
    fewest = min((len(citation) for citation in cited), default=0)
    return _Said(fewest >= least, f"{fewest} cited", f"at least {least:g} cited")


def _in_log(at: _Look) -> _Said:
    rule = "each is an action of this run, or was given to it"
    named = [single_spaced(value_text(name)) for name in at.items()]
    unknown = [name for name in named if name not in at.subject.log]
    if unknown:
        return _Said(False, f"{unknown[0][:80]!r} is no action of this run and was not given to it", rule)
    return _Said(bool(named), "" if named else "nothing", rule)


def needs_log(criteria: Iterable[Criterion]) -> bool:
    """Whether one of the criteria looks at what the run itself found."""
    return any(
        criterion.check is Check.CITES_RESOLVE and criterion.args.get("of") == LOG for criterion in criteria
    )


def _quote_in_source(at: _Look) -> _Said:
    rule = "quotes stand in their sources"
    for index, item in enumerate(at.items()):
        quote, source = (item.get("quote"), item.get("source")) if isinstance(item, Mapping) else (item, None)
        if not quoted(value_text(quote), at.subject.sources, str(source) if source else None):
            return _Said(False, f"[{index}] {value_text(quote)[:80]!r} is not in its source", rule)
    return _Said(bool(at.items()), "" if at.items() else "nothing is quoted", rule)


def quoted(quote: str, sources: Mapping[str, str], source: str | None = None) -> bool:
    """Whether a quote occurs word for word in its source, or in any where none is named."""
    needle = single_spaced(quote)
    if not needle:
        return False
    texts: Sequence[str] = [sources.get(source, "")] if source is not None else list(sources.values())
    return any(needle in single_spaced(text) for text in texts)


_PLACEHOLDER = re.compile(
    r"\b(TODO|TBD|FIXME|XXX|lorem ipsum)\b|\[(insert|your|add|fill in|placeholder)\b[^\]]*\]|\{\{[^}]*\}\}|"
    r"<(insert|your|placeholder)\b[^>]*>",
    re.IGNORECASE,
)


def _no_placeholder(at: _Look) -> _Said:
    match_ = _PLACEHOLDER.search(value_text(at.value()))
    return _Said(match_ is None, match_.group()[:60] if match_ else "", "nothing left to fill in")


def question_count(text: str) -> int:
    """Questions in a text: question marks that end something; several in a row are one."""
    return len(re.findall(r"!*[?？][?？!]*(?=[\s\"'”’)\]*_]|$)", text))


def _question_count(at: _Look) -> _Said:
    n, expected = question_count(value_text(at.value())), at.number("n")
    return _Said(n == expected, f"{n} questions", f"exactly {expected:g}")


_CHECKS: dict[Check, _Checker] = {
    Check.NON_EMPTY: _non_empty,
    Check.MIN_ITEMS: _bound(_items, "", least=True),
    Check.MAX_ITEMS: _bound(_items, "", least=False),
    Check.MIN_WORDS: _bound(_words, " words", least=True),
    Check.MAX_WORDS: _bound(_words, " words", least=False),
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
