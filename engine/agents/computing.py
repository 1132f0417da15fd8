"""What can be computed is computed: sums, verdicts and scores that overwrite a model's (ontology spec
§1.12, §5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

PILLARS = ("problem", "solution", "business_case", "people")
PILLAR_MOST = 25
NO_EVIDENCE_MOST = 12
"""The most that a pillar without evidence can have."""
GO, PIVOT = 80, 60
"""Totals from which the verdict is GO, and PIVOT."""
SCENARIOS = 4


class ComputingError(ValueError):
    """What is to be computed with is missing or out of range; the message says which field."""


@dataclass(frozen=True, slots=True)
class Computed:
    """What came of a computation."""

    data: dict[str, Any]
    """The fields as they are to stand in the answer."""
    scores: dict[str, float] = field(default_factory=dict)
    corrected: tuple[str, ...] = ()
    """What the model had written otherwise, a line each."""


def pws(data: Mapping[str, Any]) -> Computed:
    """PWS validation: four pillars of 0 to 25 with evidence; total and verdict.

    Takes `pillars: {problem: {score, evidence: [...]}, …}`; a bare number is a score without evidence.

    Raises:
        ComputingError: a pillar is missing or out of range.
    """
    given = data.get("pillars", data)
    if not isinstance(given, Mapping):
        raise ComputingError("pillars: an object with the scores of problem, solution, business_case, people")
    pillars: dict[str, dict[str, Any]] = {}
    corrected: list[str] = []
    for name in PILLARS:
        if name not in given:
            raise ComputingError(f"pillars.{name}: is missing")
        said = given[name] if isinstance(given[name], Mapping) else {"score": given[name]}
        score = _number(said.get("score"), f"pillars.{name}.score", 0, PILLAR_MOST)
        evidence = [str(one) for one in said.get("evidence", ()) if str(one).strip()]
        if isinstance(given[name], Mapping) and not evidence and score > NO_EVIDENCE_MOST:
            corrected.append(f"{name}: {score:g} without evidence becomes {NO_EVIDENCE_MOST}")
            score = float(NO_EVIDENCE_MOST)
        pillars[name] = {"score": score, "evidence": evidence or ["no evidence"]}
    total = sum(pillar["score"] for pillar in pillars.values())
    verdict = "GO" if total >= GO else "PIVOT" if total >= PIVOT else "NO-GO"
    corrected += _changed(data, {"total": total, "verdict": verdict})
    scores = {name: pillar["score"] for name, pillar in pillars.items()} | {"total": total}
    answer = {**data, "pillars": pillars, "total": total, "verdict": verdict}
    return Computed({k: v for k, v in answer.items() if k not in PILLARS}, scores, tuple(corrected))


def opportunity(importance: float, satisfaction: float) -> float:
    """The opportunity of a job: importance + max(importance - satisfaction, 0)."""
    return importance + max(importance - satisfaction, 0.0)


def jtbd(data: Mapping[str, Any]) -> Computed:
    """Jobs to be done: the opportunity of each job, highest first.

    Takes `jobs: [{kind, statement, importance, satisfaction}, …]`, both from 0 to 10.

    Raises:
        ComputingError: a number is missing or out of range.
    """
    jobs, corrected = [], []
    for index, given in enumerate(_list(data, "jobs")):
        place = f"jobs[{index}]"
        if not isinstance(given, Mapping):
            raise ComputingError(f"{place}: an object with importance and satisfaction")
        importance = _number(given.get("importance"), f"{place}.importance", 0, 10)
        satisfaction = _number(given.get("satisfaction"), f"{place}.satisfaction", 0, 10)
        value = opportunity(importance, satisfaction)
        corrected += [f"{place}.{line}" for line in _changed(given, {"opportunity": value})]
        jobs.append({**given, "opportunity": value})
    ranked = sorted(jobs, key=lambda job: -job["opportunity"])
    if ranked != jobs and any("opportunity" in given for given in data["jobs"]):
        corrected.append("the jobs are put in order of their opportunity")
    scores = {"highest_opportunity": ranked[0]["opportunity"]} if ranked else {}
    return Computed({**data, "jobs": ranked}, scores, tuple(corrected))


def scenarios(data: Mapping[str, Any]) -> Computed:
    """How robust options are: the tier of each by how many of the four scenarios it survives.

    Takes `options: [{name, survives: [scenario, …]}, …]` and `scenarios: [{name, …}, …]`.

    Raises:
        ComputingError: there are not four scenarios of different names, or an option names another one.
    """
    names = [
        str(one.get("name", "")) if isinstance(one, Mapping) else str(one) for one in _list(data, "scenarios")
    ]
    if len(names) != SCENARIOS or len(set(names)) != SCENARIOS or not all(name.strip() for name in names):
        raise ComputingError(f"scenarios: four of different names are needed; {len(set(names))} were given")
    options, corrected = [], []
    for index, given in enumerate(_list(data, "options")):
        if not isinstance(given, Mapping):
            raise ComputingError(f"options[{index}]: an object with name and survives")
        survives = list(dict.fromkeys(str(one) for one in given.get("survives", ())))
        if unknown := [one for one in survives if one not in names]:
            raise ComputingError(f"options[{index}].survives: {unknown[0]!r} is none of the scenarios")
        tier = SCENARIOS + 1 - len(survives) if survives else None
        corrected += [f"options[{index}].{line}" for line in _changed(given, {"tier": tier})]
        options.append({**given, "survives": survives, "tier": tier})
    return Computed({**data, "options": options}, {}, tuple(corrected))


BUILD = "build"
"""What `AgentSpec.compute` says of the agent that builds agents: its phases are computed."""
FORMULAS: dict[str, Callable[[Mapping[str, Any]], Computed]] = {
    "pws": pws,
    "jtbd": jtbd,
    "scenarios": scenarios,
}
"""What `AgentSpec.compute` may name."""


def compute(name: str, data: Mapping[str, Any]) -> Computed:
    """Compute by name.

    Raises:
        ComputingError: there is no such computation, or the data will not do.
    """
    formula = FORMULAS.get(name)
    if formula is None:
        raise ComputingError(f"there is no computation {name!r}; there are {', '.join(FORMULAS)}")
    return formula(data)


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    given = data.get(name)
    if not isinstance(given, list | tuple):
        raise ComputingError(f"{name}: a list is needed")
    return list(given)


def _number(given: object, place: str, low: float, high: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
        raise ComputingError(f"{place}: a number from {low:g} to {high:g} is needed")
    if not low <= given <= high:
        raise ComputingError(f"{place}: {given:g} is not from {low:g} to {high:g}")
    return float(given)


def _changed(given: Mapping[str, Any], computed: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: {given[name]!r} becomes {value!r}"
        for name, value in computed.items()
        if name in given and given[name] != value
    ]
