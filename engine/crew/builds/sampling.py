"""Answers made of criteria alone: the smallest that the checks of a specification take (ontology spec §2.8).

A scripted proof answers with them, so that an agent whose own path runs ends as it would with a model. Where
no such answer is found, what is not met is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from engine.agents import computing
from engine.agents.criteria import (
    LOG,
    Subject,
    check,
    check_all,
    count_words,
    failed,
    look,
    question_count,
    words,
)
from engine.agents.kinds import Check
from engine.agents.result import GateOutcome
from engine.agents.spec import Criterion
from engine.crew.builds.pattern_text import fitting
from engine.crew.builds.scripted_form import WORDS, filled

ROUNDS = 6
"""Times that all criteria are gone through, as what one wants may break what another had."""
_WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "jasper", "kelp"),
    *("lagoon", "meadow", "north", "opal", "prairie", "quartz", "river", "summit", "tundra", "umber"),
    *("valley", "willow", "xenon", "yarrow", "zephyr"),
)
_BASES: dict[str, dict[str, Any]] = {
    "pws": {
        "pillars": {name: {"score": 10, "evidence": ["scripted"]} for name in computing.PILLARS},
    },
    "jtbd": {
        "jobs": [
            {"kind": kind, "statement": "", "importance": 5, "satisfaction": 5}
            for kind in ("functional", "emotional", "social")
        ]
    },
    "scenarios": {
        "scenarios": [{"name": f"scripted {name}"} for name in ("first", "second", "third", "fourth")],
        "options": [{"name": "scripted option", "survives": ["scripted first"]}],
    },
}
"""What computations need, by name (`engine.agents.computing`)."""


_Make = Callable[[int, Any], Any]
"""What is to stand at a place, by its number and what stands there."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer, and what of the criteria it does not meet."""

    text: str
    data: dict[str, Any]
    unmet: tuple[GateOutcome, ...] = ()


@dataclass(slots=True)
class _Draft:
    """An answer that is being made."""

    criteria: Sequence[Criterion]
    formula: str
    sources: Mapping[str, str]
    log: Sequence[str] = ()
    text: str = WORDS
    data: dict[str, Any] = field(default_factory=dict)
    used: Iterator[int] = field(default_factory=count)

    @property
    def subject(self) -> Subject:
        data = self.data
        with suppress(computing.ComputingError):
            data = computing.compute(self.formula, data).data
        return Subject(self.text, data, self.sources, frozenset(self.log))

    def fresh(self, least: int = 3) -> str:
        """Words that stand nowhere else in the answer."""
        numbers = [next(self.used) for _ in range(max(3, least))]
        return " ".join(_WORDS[n % len(_WORDS)] + (str(n // len(_WORDS)) or "")[: n >= 26] for n in numbers)

    def objects(self, path: str) -> bool:
        """Whether the items of a list are objects: another criterion names a field of theirs."""
        return any(
            one.field.startswith((f"{path}[].", f"{path}."))
            or (one.field == path and (one.args.get("key") or isinstance(one.args.get("distinct"), str)))
            or (one.field == path and one.check is Check.QUOTE_IN_SOURCE)
            for one in self.criteria
        )

    def put(self, path: str, make: _Make) -> None:
        """Give each place of a path what `make` says of its number and what is there; a path is made."""
        if not path:
            self.text = words(make(0, self.text))
        else:
            _put(self.data, path.split("."), make, count())


def sample(
    criteria: Sequence[Criterion],
    *,
    names: Sequence[str] = (),
    formula: str = "",
    sources: Mapping[str, str] | None = None,
    log: Sequence[str] = (),
    mentions: Sequence[str] = (),
) -> Sample:
    """The smallest answer found that meets criteria.

    Args:
        criteria: what it has to meet; rubrics are left out, as nobody judges a script.
        names: fields that have to be there.
        formula: what is computed of it.
        sources: what can be cited and quoted, by id.
        log: ids of what the run found.
        mentions: what its words have to name.
    """
    draft = _Draft(criteria, formula, sources or {}, log, data=_copied(_BASES.get(formula, {})))
    if mentions:
        draft.text += " It names " + ", ".join(mentions) + "."
    for name in names:
        draft.data.setdefault(name, [{}] if draft.objects(name) else draft.fresh())
    for _ in range(ROUNDS):
        wrong = [one for one in criteria if check(one, draft.subject).passed is False]
        if not wrong:
            break
        for one in wrong:
            if check(one, draft.subject).passed is False:
                _FIXES[one.check](draft, one)
    return Sample(draft.text, draft.data, failed(check_all(criteria, draft.subject)))


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(one) for name, one in value.items()}
    return list(map(_copied, value)) if isinstance(value, list) else value


def _put(
    node: dict[str, Any], parts: Sequence[str], make: Callable[[int, Any], Any], at: Iterator[int]
) -> None:
    name, each = parts[0].removesuffix("[]"), parts[0].endswith("[]")
    there = node.get(name)
    if len(parts) == 1:
        if not each:
            node[name] = make(next(at), there)
        else:
            items = there if isinstance(there, list) and there else [None]
            node[name] = [make(next(at), one) for one in items]
    elif each or isinstance(there, list):
        items = there if isinstance(there, list) and there else [{}]
        node[name] = [one if isinstance(one, dict) else {} for one in items]
        for one in node[name]:
            _put(one, parts[1:], make, at)
    else:
        node[name] = there if isinstance(there, dict) else {}
        _put(node[name], parts[1:], make, at)


# ------------------------------------------------------------------ what makes a check pass


def _edit(draft: _Draft, path: str, change: Callable[[str], str]) -> None:
    """Change each text that a criterion looks at."""
    draft.put(path, lambda _n, old: [change(words(x)) for x in old] if _list(old) else change(words(old)))


def _list(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _number(one: Criterion, name: str) -> int:
    with suppress(TypeError, ValueError):
        return max(0, min(500, round(float(one.args.get(name, 0)))))
    return 0


def _non_empty(draft: _Draft, one: Criterion) -> None:
    def make(_n: int, old: Any) -> Any:
        if old is None and draft.objects(one.field):
            return [{}]
        if isinstance(old, list):
            return [item if words(item).strip() else draft.fresh() for item in old] or [draft.fresh()]
        return old if words(old).strip() else draft.fresh()

    draft.put(one.field, make)


def _min_items(draft: _Draft, one: Criterion) -> None:
    least, distinct = _number(one, "n"), one.args.get("distinct")
    path = one.field.removesuffix("[]") if distinct is True else one.field
    objects = draft.objects(one.field) or isinstance(distinct, str)

    def make(_n: int, old: Any) -> list[Any]:
        items = list(old) if isinstance(old, list) else []
        items += [{} if objects else draft.fresh() for _ in range(least - len(items))]
        if isinstance(distinct, str):
            items = [{**one, distinct: draft.fresh()} for one in items if isinstance(one, dict)]
        return items

    draft.put(path, make)


def _max_items(draft: _Draft, one: Criterion) -> None:
    most = _number(one, "n")
    draft.put(one.field, lambda _n, old: old[:most] if isinstance(old, list) else old)


def _min_words(draft: _Draft, one: Criterion) -> None:
    least = _number(one, "n")
    _edit(draft, one.field, lambda text: f"{text} {draft.fresh(least - count_words(text))}".strip())


def _max_words(draft: _Draft, one: Criterion) -> None:
    most = _number(one, "n")
    _edit(draft, one.field, lambda text: " ".join(text.split()[:most]))


def _regex(draft: _Draft, one: Criterion) -> None:
    pattern, absent = str(one.args.get("pattern", "")), one.args.get("absent")
    found = fitting(pattern)

    def change(text: str) -> str:
        if absent:
            return draft.fresh()
        for tried in (text, f"{text}\n{found}", f"{found}\n{text}", found):
            if re.search(pattern, tried, re.IGNORECASE if one.args.get("ignore_case") else 0):
                return tried
        return text

    with suppress(re.error):
        _edit(draft, one.field, change)


def _sections(draft: _Draft, one: Criterion) -> None:
    names = one.args.get("sections") or ()
    named = [names] if isinstance(names, str) else list(map(str, names))
    parts = "\n\n".join(f"# {name}\n\n{draft.fresh()}" for name in named)
    _edit(draft, one.field, lambda text: f"{text}\n\n{parts}".strip())


def _json_schema(draft: _Draft, one: Criterion) -> None:
    schema = one.args.get("schema")
    if not isinstance(schema, Mapping):
        return
    if one.field:
        draft.put(one.field, lambda _n, _old: filled(schema))
    else:
        draft.data |= filled(schema)


def _number_range(draft: _Draft, one: Criterion) -> None:
    low = one.args.get("low", 0)
    draft.put(one.field, lambda _n, old: [low for _ in old] if _list(old) else low)


def _sum_equals(draft: _Draft, one: Criterion) -> None:
    fields, equals = one.args.get("fields"), one.args.get("equals")
    paths = [fields] if isinstance(fields, str) else [str(path) for path in fields or ()]
    if not isinstance(equals, str):
        for path in paths or [one.field]:
            share = (equals or 0) / max(1, len(paths))
            draft.put(path, lambda _n, _old, share=share: share if paths else [share])  # type: ignore[misc]
        return
    subject = draft.subject
    parts = [look(subject, path) for path in paths] if paths else look(subject, one.field)
    total = sum(one for one in parts or () if isinstance(one, int | float))
    draft.put(equals, lambda _n, _old: total)


def _one_of(draft: _Draft, one: Criterion) -> None:
    given = one.args.get("values") or ()
    values = [given] if isinstance(given, str) else list(map(str, given))
    if named := str(one.args.get("values_from", "")):
        if not words(look(draft.subject, named)).strip():
            draft.put(named, lambda _n, _old: draft.fresh())
        lines = words(look(draft.subject, named)).splitlines()
        values += [line.strip(" -*•") for line in lines if line.strip()]
    if not values:
        return
    if one.args.get("inside"):
        _edit(draft, one.field, lambda text: f"{text} {values[0]}".strip())
    else:
        draft.put(one.field, lambda n, old: [values[0]] * len(old) if _list(old) else values[n % len(values)])


def _unique(draft: _Draft, one: Criterion) -> None:
    key, fields = str(one.args.get("key", "")), one.args.get("fields")
    for path in [fields] if isinstance(fields, str) else list(fields or ()):
        draft.put(str(path), lambda _n, _old: draft.fresh())
    if fields:
        return

    def make(_n: int, old: Any) -> Any:
        if not isinstance(old, list):
            return draft.fresh()
        return [
            {**item, key: draft.fresh()} if key and isinstance(item, dict) else draft.fresh() for item in old
        ]

    draft.put(one.field, make)


def _cites(draft: _Draft, one: Criterion) -> None:
    if one.args.get("of") == LOG:
        if draft.log:
            draft.put(one.field, lambda _n, old: [draft.log[0]] * len(old) if _list(old) else draft.log[0])
        return
    given = one.args.get("values") or ()
    known = ([given] if isinstance(given, str) else list(map(str, given))) or list(draft.sources)
    least = max(1, _number(one, "least")) if "least" in one.args else 1
    cited = " ".join(f"[{name}]" for name in known[:least])
    _edit(draft, one.field, lambda text: f"{text} {cited}".strip())


def _quotes(draft: _Draft, one: Criterion) -> None:
    name, text = next(((name, text) for name, text in draft.sources.items() if text.strip()), ("", ""))
    quote = " ".join(text.split()[:8])

    def make(_n: int, old: Any) -> Any:
        items = old if _list(old) else [{}]
        return [
            {**(item if isinstance(item, dict) else {}), "quote": quote, "source": name} for item in items
        ]

    draft.put(one.field, make)


def _no_placeholder(draft: _Draft, one: Criterion) -> None:
    _edit(draft, one.field, lambda _text: draft.fresh())


def _questions(draft: _Draft, one: Criterion) -> None:
    wanted = _number(one, "n")

    def change(text: str) -> str:
        if question_count(text) > wanted:
            text = re.sub("[?？]", ".", text)
        return " ".join((text, *["Scripted?"] * (wanted - question_count(text)))).strip()

    _edit(draft, one.field, change)


_FIXES: dict[Check, Callable[[_Draft, Criterion], None]] = {
    Check.NON_EMPTY: _non_empty,
    Check.MIN_ITEMS: _min_items,
    Check.MAX_ITEMS: _max_items,
    Check.MIN_WORDS: _min_words,
    Check.MAX_WORDS: _max_words,
    Check.REGEX: _regex,
    Check.SECTIONS_IN_ORDER: _sections,
    Check.JSON_SCHEMA: _json_schema,
    Check.NUMBER_RANGE: _number_range,
    Check.SUM_EQUALS: _sum_equals,
    Check.ONE_OF: _one_of,
    Check.UNIQUE: _unique,
    Check.CITES_RESOLVE: _cites,
    Check.QUOTE_IN_SOURCE: _quotes,
    Check.NO_PLACEHOLDER: _no_placeholder,
    Check.QUESTION_COUNT: _questions,
}
"""How an answer is brought to pass a check; what comes of it is looked at again."""
