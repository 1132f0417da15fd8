"""What `pilothouse explorer` says of a candidate, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean, median, pstdev
from typing import Any

from app.explorer import Result
from engine.generation.pgp.asking import Reply

CODES = {
    "PC": "pc",
    "CC": "cc",
    "cc_ref": "cc_ref",
    "PBC": "pbc",
    "GC": "gc",
    "RR": "rr",
    "rr_ref": "rr_ref",
    "NGC": "ngc",
    "NBC": "nbc",
    "GSA": "gsa",
    "BSA": "bsa",
    "bsa_ref": "bsa_ref",
}
"""The metrics that plans alone decide: the name in the contract, and which of `Metrics` it is."""
STATISTICS = ("mean", "sd", "median", "min", "max")


def report(result: Result, seeds: str) -> dict[str, Any]:
    """A result ready for JSON, with the keys of the contract first; numbers to two digits."""
    metrics, times = result.metrics.as_dict(), result.times()
    answer = result.review.answer
    return {
        "runs": len(result.counted),
        "TSR": _two(result.tsr),
        "GAT": {name: _two(mean(found)) if found else None for name, found in times.items()},
        **{code: _two(metrics[name]) for code, name in CODES.items()},
        "PRAS": _pras(result),
        "unparsable": len(answer.problems),
        "unknown_actions": result.unknown_actions,
        "executable": bool(answer.plans),
        "plans": result.candidate.name,
        "pgp": result.candidate.answerer is not None,
        "seeds": seeds,
        "spread": {name: _spread(found) for name, found in times.items()},
        "main": result.main.value,
        "generations": max(run.generations for run in result.counted),
        "asked": _asked(result),
        "problems": list(result.review.complaints),
    }


def _pras(result: Result) -> dict[str, Any]:
    found = result.judgement
    if found is None:
        return {"value": _two(result.surrogate), "kind": "surrogate"}
    value = None if found.value is None else _two(found.value)
    return {"value": value, "kind": "judge"} | ({"problem": found.problem} if found.problem else {})


def _asked(result: Result) -> dict[str, Any]:
    replies = [one for one in result.said if isinstance(one, Reply)]
    return {
        "prompts": len(result.said),
        "failures": [str(one) for one in result.said if not isinstance(one, Reply)],
        "models": sorted({one.model for one in replies}),
        "input_tokens": sum(one.input_tokens for one in replies),
        "output_tokens": sum(one.output_tokens for one in replies),
        "latency_ms": _two(mean(one.latency_ms for one in replies)) if replies else None,
    }


def _spread(values: Sequence[int]) -> dict[str, float | None]:
    """How values are spread, `sd` over all of them; None where no run reached home."""
    if not values:
        return dict.fromkeys(STATISTICS)
    found = (mean(values), pstdev(values), median(values), min(values), max(values))
    return dict(zip(STATISTICS, map(_two, found), strict=True))


def _two(value: float) -> float:
    return round(value, 2)


def words(answer: dict[str, Any]) -> str:
    """A report for a person."""
    return "\n".join(_lines(answer))


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    how = "generated when the goal found no plan" if answer["pgp"] else "there from the start"
    runs = f"{answer['runs']} run{'s' if answer['runs'] > 1 else ''} in each cycle"
    yield f"{answer['plans']}: plans {how}; seeds {answer['seeds']}, {runs}"
    yield f"  {'TSR':<11}{answer['TSR']:>9}"
    for code in CODES:
        yield f"  {code:<11}{answer[code]:>9}"
    pras = answer["PRAS"]
    value = "none" if pras["value"] is None else pras["value"]
    problem = f": {pras['problem']}" if "problem" in pras else ""
    yield f"  {'PRAS':<11}{value:>9} by {'a judge' if pras['kind'] == 'judge' else 'surrogate'}{problem}"
    yield f"  {'GAT':<11}" + "".join(f"{name:>9}" for name in STATISTICS)
    for name, spread in answer["spread"].items():
        shown = (spread[one] for one in STATISTICS)
        yield f"  {name:<11}" + "".join(f"{'never' if one is None else one:>9}" for one in shown)
    for line in (*answer["asked"]["failures"], *answer["problems"]):
        yield f"  {line}"
