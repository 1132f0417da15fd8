"""The table of what came of every case, at most 110 columns wide."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable

from engine.sandbox.tier import layers
from tests.security.case import Case, Column, Outcome, Result
from tests.security.measure import Measured, results
from tests.security.race import NAIVE, VERBS

WIDTH = 110
_CELL = 13
_TITLE = WIDTH - 5 - len(Column) * (_CELL + 1)
LEGEND = (
    "stopped N: all N attempts were. held N: what must be stopped was, and what must work works. through "
    "N/M: N of M got through, by design unless it says FAILED. n.a.: nothing could be tried, see below. -: "
    "nothing to try. A test without a tier or user in its name is of the cockpit's own code and stands where "
    "its user ran it.",
)


def table(cases: Iterable[Case], measured: Measured, *, markdown: bool = False) -> list[str]:
    """One line for each case: how many of its attempts were stopped in each column."""
    rows = [["", "case", *(column.value for column in Column)]]
    for case in cases:
        found = results(case, measured)
        rows.append([str(case.number), case.title, *(cell(found[column]) for column in Column)])
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        return [lines[0], "|--:|---" + "|---" * len(Column) + "|", *lines[1:]]
    return [_line(row) for row in rows]


def _line(row: list[str]) -> str:
    number, title, *cells = row
    return (
        f"{number:>3}  {title[:_TITLE]:<{_TITLE}}"
        + "".join(f" {text[:_CELL]:<{_CELL}}" for text in cells).rstrip()
    )


def cell(found: Iterable[Result]) -> str:
    """What came of the attempts in one column, in thirteen characters."""
    found = tuple(found)
    count = Counter(result.outcome for result in found)
    bad = sum(result.bad for result in found)
    if bad:
        return f"FAILED {bad}/{len(found)}"
    tried = len(found) - count[Outcome.ABSENT]
    if not tried:
        return "n.a." if found else "-"
    if count[Outcome.THROUGH]:
        return f"through {count[Outcome.THROUGH]}/{tried}"
    if not count[Outcome.STOPPED]:
        return f"works {count[Outcome.WORKS]}"
    return f"stopped {tried}" if not count[Outcome.WORKS] else f"held {tried}"


def summary(cases: Iterable[Case], measured: Measured) -> list[str]:
    """A line for each column, and one for what must not be."""
    every: dict[Column, list[Result]] = {column: [] for column in Column}
    for case in cases:
        for column, found in results(case, measured).items():
            every[column] += found
    lines = []
    for column, found in every.items():
        count = Counter(result.outcome for result in found)
        named = sum(result.outcome is Outcome.THROUGH and result.allowed for result in found)
        through = f"{named} through{' by design' if column is not Column.NO_JAIL else ''}"
        lines.append(
            f"{column.value:<12} {len(found) - count[Outcome.ABSENT]:>4} attempts: "
            f"{count[Outcome.STOPPED]} stopped, {through}, {count[Outcome.WORKS]} work, "
            f"{count[Outcome.ABSENT]} n.a., {sum(result.bad for result in found)} failed"
        )
    return lines


def seen(cases: Iterable[Case], measured: Measured) -> list[str]:
    """What gets through in KERNEL by design."""
    names = {
        result.name
        for case in cases
        for column, found in results(case, measured).items()
        if column.tier == "KERNEL"
        for result in found
        if result.outcome is Outcome.THROUGH and result.allowed
    }
    return [f"KERNEL lets through, by design: {', '.join(sorted(names)) or 'nothing'}"]


def races(measured: Measured, seconds: float) -> list[str]:
    """Tries and leaks of every verb."""
    lines = [
        f"swapped links: {seconds:g} s for each group of four or five verbs at once "
        "(done + refused = tries, then leaks)"
    ]
    for root, scores in measured.races.items():
        who = "root" if root else "user"
        for verb in (NAIVE, *VERBS):
            if verb in scores:
                one = scores[verb]
                sums = f"{one['done']:>7,} + {one['refused']:>7,} = {one['tries']:>8,}"
                lines.append(f"  {who} {verb:<22} {sums} {one['leaks']:>8,}")
    return lines


def missing(cases: Iterable[Case], measured: Measured) -> list[str]:
    """Every part that was not tried, with the reason."""
    lines, where = ["not tried:"], {}
    for case in cases:
        lines += [f"  {case.number}: {why}" for why in case.absent]
        for column, found in results(case, measured).items():
            for result in found:
                if result.outcome is Outcome.ABSENT:
                    where.setdefault((case.number, result.name, result.said), []).append(column)
    grouped: dict[tuple[str, tuple[Column, ...]], list[str]] = {}
    for (number, name, why), found_in in where.items():
        grouped.setdefault((why, tuple(found_in)), []).append(f"{number} {name}")
    for (why, found_in), names in grouped.items():
        everywhere = "" if len(found_in) == len(Column) else f" ({', '.join(found_in)})"
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        lines.append(f"  {why}{everywhere}: {', '.join(names[:6])}{more}")
    return lines


def failures(cases: Iterable[Case], measured: Measured) -> list[str]:
    """Everything that must not be; empty when the jail held."""
    lines = [
        f"case {case.number}, {column}: {result.name}: {result.outcome} ({result.said})"
        for case in cases
        for column, found in results(case, measured).items()
        for result in found
        if result.bad
    ]
    for column, names in measured.changed.items():
        if names and column is not Column.NO_JAIL:
            lines.append(f"{column}: changed outside: {', '.join(names[:5])}")
    for root, scores in measured.races.items():
        if scores and not scores[NAIVE]["leaks"]:
            lines.append(f"the swapper never beat a naive tool as {'root' if root else 'user'}: no proof")
    return lines


def heading() -> str:
    """Which machine it was."""
    found = layers()
    names = ", ".join(report.name for report in found.reports if report.ok)
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return f"{system}, Python {platform.python_version()}: {names}"
