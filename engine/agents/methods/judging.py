"""The judge of a debate: asked twice, the second time in the other order (ontology spec §1.11, 6 to 8).

It sees labels and no names. What both passes say alike stands; else it is undecided and the operator
is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from engine.agents.criteria import plain
from engine.agents.methods.debate import ClaimStatus, Debate, record
from engine.agents.values import InvalidError, Problem, Share, Value
from engine.domain.fence import fence

SYNTHESIS, UNDECIDED = "synthesis", "undecided"
CONTESTED_MOST = 0.5
SIDE_CHARACTERS = 12_000
"""Characters of each side that the judge sees, the same for all."""


class Judgement(Value):
    """What the judge says in one pass."""

    winner: str
    """The label of a side, `synthesis` or `undecided`."""
    confidence: Share
    decisive_claim_ids: tuple[str, ...] = Field(default=(), max_length=20)
    reasons: dict[str, str] = Field(default_factory=dict)
    """By criterion: `evidence`, `rebuttal`, `fit`."""


class Verdict(Value):
    """What came of a debate."""

    winner: str
    confidence: Share
    contested: bool = False
    decisive: tuple[str, ...] = ()
    passes: tuple[Judgement, ...] = ()
    dissent: tuple[str, ...] = ()
    """Claims of the losing sides that stand, with their ids."""
    operator: str = ""
    """What the operator said beside it; never in place of it."""


def orders(debate: Debate) -> tuple[tuple[str, ...], ...]:
    """The orders in which the judge sees the sides: as they are, and turned around."""
    given = debate.labels
    return (given, tuple(reversed(given))) if debate.spec.order_swap else (given,)


def judge_prompt(debate: Debate, order: Sequence[str], success: str = "") -> str:
    """What the judge is told in one pass: the same text for each order, the sides in that order."""
    blocks = [
        f"Motion: {debate.motion}",
        f"What success looks like: {plain(success) or 'not said'}",
        "Judge the sides by evidence, by rebuttal and by fit to what success looks like. Claims that stand "
        "count; the ledger says which do. Name the winner by its label, or `synthesis` or `undecided`, how "
        "sure you are, and the ids of the claims that decided it.",
    ]
    for side in order:
        blocks.append(fence(f"side {side}", _nameless(debate, record(debate, (side,)))[:SIDE_CHARACTERS]))
    return "\n\n".join(blocks)


def _nameless(debate: Debate, text: str) -> str:
    """A text in which agents are called by their labels."""
    for side in debate.spec.sides:
        for name in {side.agent_id, side.agent_id.replace("-", " ")}:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", f"side {side.label}", text, flags=re.IGNORECASE)
    return text


def read_judgement(debate: Debate, given: Mapping[str, Any]) -> Judgement:
    """What the judge said.

    Raises:
        InvalidError: the winner is none that there is, or a decisive claim does not stand.
    """
    said = Judgement.read(given, "judgement")
    problems = []
    if said.winner not in (*debate.labels, SYNTHESIS, UNDECIDED):
        known = ", ".join((*debate.labels, SYNTHESIS, UNDECIDED))
        problems.append(Problem(path="winner", message=f"{said.winner[:40]!r} is none of {known}"))
    for ident in said.decisive_claim_ids:
        claim = debate.claim(ident)
        if claim is None or claim.status is not ClaimStatus.STANDING:
            state = "no claim" if claim is None else claim.status.value
            message = f"{ident[:20]} is {state}; only standing claims decide"
            problems.append(Problem(path="decisive_claim_ids", message=message))
    if problems:
        raise InvalidError("judgement", tuple(problems))
    return said


def undecided(reason: str) -> Judgement:
    """A pass that gave no judgement that counts."""
    return Judgement(winner=UNDECIDED, confidence=0.0, reasons={"invalid": reason})


def verdict(debate: Debate, passes: Sequence[Judgement]) -> Verdict:
    """What both passes say together.

    Raises:
        ValueError: there is no pass.
    """
    if not passes:
        raise ValueError("a verdict needs at least one pass of the judge")
    mean = sum(one.confidence for one in passes) / len(passes)
    decisive = tuple(dict.fromkeys(ident for one in passes for ident in one.decisive_claim_ids))
    winners = {one.winner for one in passes}
    if len(winners) > 1:
        dissent = tuple(f"{claim.id}: {claim.text}" for claim in debate.standing())
        return Verdict(
            winner=UNDECIDED,
            confidence=min(CONTESTED_MOST, mean),
            contested=True,
            decisive=decisive,
            passes=tuple(passes),
            dissent=dissent,
        )
    (winner,) = winners
    doubtful = [
        ident for ident in decisive if (claim := debate.claim(ident)) is not None and claim.unverified
    ]
    share = len(doubtful) / len(decisive) if decisive else 0.0
    return Verdict(
        winner=winner,
        confidence=round(mean * (1 - 0.5 * share), 9),
        decisive=decisive,
        passes=tuple(passes),
        dissent=tuple(f"{claim.id}: {claim.text}" for claim in debate.standing() if claim.side != winner),
    )


def overridden(given: Verdict, operator: str) -> Verdict:
    """The verdict with the operator's beside it."""
    return given.model_copy(update={"operator": plain(operator)[:2_000]})
