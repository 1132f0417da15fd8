"""One judgement under way: what was asked and seen of both trees, and the verdict that follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from engine.core.improvement import Gain, Ruling, Verdict
from engine.core.text import clean_line
from engine.improve.judge.box import BoxLimits
from engine.improve.judge.changes import Change, Violation
from engine.improve.judge.measurement import PairedRounds
from engine.improve.judge.questions import RoundResult, SuiteAsker
from engine.improve.judge.reach import added_reach
from engine.improve.judge.violations import contradicted, shown_right
from engine.improve.ports import BoxedSuite, Check, Outcome, Split, Suite
from engine.value import dataclass, field

_BREACHES, _NAMED = 12, 5
"""Breaches that a verdict lists, and checks that a reason names; of the others it says how many there are."""


@dataclass(frozen=True, slots=True)
class JudgeBudget:
    """What one judgement may cost."""

    processor_s: float = 300.0
    """Processor seconds of all boxes; measuring ends early when they are used up."""
    rounds: int = 10
    """Pairs that time is taken in; six of them are enough where that decides it clearly."""
    most: int = 20
    """Pairs where it looks better after these and that is not shown."""
    again: int = 3
    """How often a check is asked again, in both trees, whose outcome is another one with the candidate."""
    limits: BoxLimits = field(default_factory=BoxLimits)


@dataclass(slots=True)
class Case:
    """One judgement under way."""

    before: Path
    after: Path
    suite: Suite
    seed: int
    budget: JudgeBudget
    asker: SuiteAsker
    drawn: list[Check] = field(default_factory=list)
    """What is asked besides, drawn when the candidate was known."""
    otherwise: list[str] = field(default_factory=list)
    """Drawn checks that are answered otherwise than before."""
    sealed: bool = True
    allow: bool = False
    backed: bool = False
    """Whether the code around what was mended shows it to be right."""
    digests: dict[Path, str] = field(default_factory=dict)
    """What the trees hold."""
    changes: tuple[Change, ...] = ()
    breaches: list[Violation] = field(default_factory=list)
    old: dict[str, Outcome] = field(default_factory=dict)
    new: dict[str, Outcome] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    unsteady: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    material: dict[str, bytes] = field(default_factory=dict)
    """The suite's files that lie over the trees."""
    references: dict[tuple[Split, ...], RoundResult] = field(default_factory=dict)
    gain: Gain | None = None
    processor_s: float = 0.0

    @property
    def broken(self) -> tuple[str, ...]:
        """Checks that held and do not hold now."""
        return tuple(name for name, was in self.old.items() if was is Outcome.HOLDS and not self._holds(name))

    @property
    def doubtful(self) -> bool:
        """Whether it mends what may be seen, and no more was asked that shows it to be right."""
        return bool(self.mended) and not shown_right(self.mended, self.checks, self.changes)

    @property
    def mended(self) -> tuple[str, ...]:
        """Checks that failed and hold now."""
        return tuple(name for name, was in self.old.items() if was is Outcome.FAILS and self._holds(name))

    def _holds(self, name: str) -> bool:
        return self.new.get(name) is Outcome.HOLDS


def set_apart(case: Case, checks: Sequence[Check]) -> None:
    """Take drawn comparisons out of what holds and fails: they say that it differs, not what is right."""
    for check in checks:
        if check.drawn:
            old, new = case.old.pop(check.id, None), case.new.pop(check.id, None)
            if old is Outcome.HOLDS and new is not Outcome.HOLDS:
                case.otherwise.append(check.id)


def take_outcomes(case: Case, rounds: PairedRounds, checks: Sequence[Check]) -> None:
    """A check that does not hold in one of the measured rounds does not hold, where it does so before."""
    for check in checks:
        was = all(results.outcome(check.id) is Outcome.HOLDS for results in rounds.before)
        wrong = [results for results in rounds.after if results.outcome(check.id) is not Outcome.HOLDS]
        if was and wrong:
            case.new[check.id] = wrong[0].outcome(check.id)
            case.texts[check.id] = wrong[0].seen[check.id].report.text


def verdict_of(case: Case) -> Verdict:
    """What follows from all that was seen."""
    problems = list(dict.fromkeys(case.breaches))[:_BREACHES]
    reasons = [breach.sentence for breach in problems]
    gain = case.gain
    measure = case.suite.measure
    shown = gain is not None and gain.low > (measure.least if measure else 0.0)
    ruling, why = (Ruling.REJECTED, []) if problems else _ruling(case, shown)
    reasons += why
    if gain is not None and measure is not None:
        sure = (
            f"gain {gain.low:.3g} to {gain.high:.3g} at 95 %" if _known(gain) else "too few to show anything"
        )
        reasons.append(f"{gain.words}, {sure}, {gain.pairs} pairs")
        if gain.shown and not shown:
            reasons.append(f"a gain counts from {measure.least:g} on")
    if case.unsteady:
        reasons.append(_listed("left out, for they do not come out the same each time", tuple(case.unsteady)))
    if ruling is Ruling.BETTER and not shown:
        gain = _counted(case)
    return Verdict(
        ruling=ruling,
        reasons=tuple(clean_line(reason, limit=500) for reason in reasons),
        gain=gain if ruling in (Ruling.BETTER, Ruling.NO_BETTER) and _known(gain) else None,
        mended=case.mended,
        broken=case.broken,
        cheats=tuple(dict.fromkeys(str(breach.cheat) for breach in problems)),
    )


def _ruling(case: Case, shown: bool) -> tuple[Ruling, list[str]]:
    """The ruling on a candidate that violates nothing, and why."""
    if case.broken:
        text = [case.texts[name] for name in case.broken[:1] if case.texts.get(name)]
        return Ruling.BROKEN, [_listed("what held does not hold with it", case.broken), *text]
    tests = [check.id for check in case.checks if check.test]
    if open_ := unshown(case, case.backed):
        return Ruling.NO_BETTER, open_
    if shown and tests and not any(case.new.get(test) is Outcome.HOLDS for test in tests):
        return Ruling.NO_BETTER, ["none of its tests passes, so nothing says that it still does the same"]
    if case.mended or shown:
        return Ruling.BETTER, [_listed("mended", case.mended)] if case.mended else []
    why = "nothing that failed holds with it" if case.gain is None else "its gain is not shown"
    return Ruling.NO_BETTER, [why]


def unshown(case: Case, backed: bool) -> list[str]:
    """Why a candidate that mends or saves something is not put forward all the same.

    Args:
        case: what was seen.
        backed: whether the code around it shows what it mends to be right.
    """
    if not case.sealed or not isinstance(case.suite, BoxedSuite):
        return []
    if case.otherwise:
        texts = [case.texts[name] for name in case.otherwise[:1]]
        return [_listed("it does otherwise than before, and nothing says that this is right", texts)]
    if not case.allow and (added := added_reach(case.changes)):
        return [f"it newly {words}; --allow lets it" for words in added]
    if contradicted(case.mended, case.checks, case.new) or (case.doubtful and not backed):
        return ["it mends what is visible, and nothing beyond that shows it to be right"]
    return []


def _known(gain: Gain | None) -> bool:
    """Whether there is an interval; too few pairs have none."""
    return gain is not None and math.isfinite(gain.low) and math.isfinite(gain.high)


def _counted(case: Case) -> Gain:
    """What was mended, counted: every check was asked, so there is nothing to estimate."""
    old, new = (sum(result is Outcome.HOLDS for result in side.values()) for side in (case.old, case.new))
    more = float(new - old)
    return Gain(more, more, more, len(case.old), "checks passed", float(old), float(new))


def _listed(words: str, names: Sequence[str]) -> str:
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{words}: {', '.join(names[:_NAMED])}{rest}"
