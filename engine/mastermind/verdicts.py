"""Verdicts as the journal and a person take them."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

from engine.domain.improvement import Concern, Gain, Proposal, Ruling, Verdict
from engine.domain.mastermind import Candidate
from engine.domain.text import clean, clean_line


def better(candidate: Candidate) -> bool:
    """Whether the judge found a candidate better."""
    return candidate.verdict is not None and candidate.verdict.ruling is Ruling.BETTER


RIGHT = (Concern.TEST, Concern.ROBUSTNESS)
"""What is mended without anything becoming cheaper."""


def promising(seen: Verdict, proposal: Proposal) -> bool:
    """Whether what may be seen speaks for a candidate enough to decide by what is sealed.

    What is seen decides nothing: it has few pairs, and a check that is missing may fail no test there is. So
    only what is ruled out is left out: what broke or cheated, and what gains nothing and mends nothing.
    """
    if seen.ruling is not Ruling.NO_BETTER:
        return seen.ruling is Ruling.BETTER
    mends = any(one.concern in RIGHT for one in proposal.answers)
    return mends or seen.gain is None or seen.gain.high > 0


def figures(verdict: Verdict | None) -> str:
    """The figures of a verdict in a line."""
    if verdict is None:
        return "not judged"
    parts = []
    if (gain := verdict.gain) is not None:
        parts.append(f"{gain.mean:+.3g} {gain.unit} [{gain.low:.3g}, {gain.high:.3g}] in {gain.pairs} pairs")
    if verdict.mended:
        parts.append(f"mends {', '.join(verdict.mended[:5])}")
    return "; ".join(parts) or "; ".join(verdict.reasons) or str(verdict.ruling)


def sound(verdict: Verdict) -> Verdict:
    """A verdict as the journal takes it: no figure that is no number, every text cleaned."""
    gain = verdict.gain
    if gain is not None:
        numbers = (gain.mean, gain.low, gain.high, gain.before, gain.after)
        kept = [_number(one) for one in numbers]
        gain = Gain(kept[0], kept[1], kept[2], gain.pairs, gain.unit, kept[3], kept[4])
    return replace(
        verdict,
        gain=gain,
        reasons=tuple(clean(one, limit=2_000) for one in verdict.reasons),
        mended=tuple(clean_line(one) for one in verdict.mended),
        broken=tuple(clean_line(one) for one in verdict.broken),
        seconds=_number(verdict.seconds),
    )


def _number(value: float) -> float:
    """A number that JSON has; endless ones are the largest."""
    if isnan(value):
        return 0.0
    return max(-1e308, min(1e308, value))
