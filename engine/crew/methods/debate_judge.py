"""The judge of a debate: asked twice, the second time in the other order.

It sees labels and no names. What both passes agree on stands; else it is undecided and the operator is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from engine.core.text import fence
from engine.crew.methods.debate import ClaimStatus, Debate, record
from engine.crew.ontology.criteria import single_spaced
from engine.crew.ontology.kinds import InvalidError, OntologyValue, Share, SpecProblem

SYNTHESIS, UNDECIDED = "synthesis", "undecided"
CONTESTED_MOST = 0.5
SIDE_CHARACTERS = 12_000
"""Characters of each side that the judge sees, the same for all."""


class Judgement(OntologyValue):
    """What the judge says in one pass."""

    winner: str
    """The label of a side, `synthesis` or `undecided`."""
    confidence: Share
    decisive_claim_ids: tuple[str, ...] = Field(default=(), max_length=20)
    reasons: dict[str, str] = Field(default_factory=dict)
    """By criterion: `evidence`, `rebuttal`, `fit`."""


class Verdict(OntologyValue):
    """The result of a debate."""

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
    """What the judge is shown in one pass: the same text for each order, the sides in that order."""
    blocks = [
        f"Motion: {debate.motion}",
        f"What success looks like: {single_spaced(success) or 'not said'}",
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


def parse_judgement(debate: Debate, given: Mapping[str, Any]) -> Judgement:
    """What the judge said.

    Raises:
        InvalidError: the winner is none that there is, or a decisive claim does not stand.
    """
    judgement = Judgement.read(given, "judgement")
    problems = []
    if judgement.winner not in (*debate.labels, SYNTHESIS, UNDECIDED):
        known = ", ".join((*debate.labels, SYNTHESIS, UNDECIDED))
        problems.append(SpecProblem("winner", f"{judgement.winner[:40]!r} is none of {known}"))
    for ident in judgement.decisive_claim_ids:
        claim = debate.claim(ident)
        if claim is None or claim.status is not ClaimStatus.STANDING:
            state = "no claim" if claim is None else claim.status.value
            message = f"{ident[:20]} is {state}; only standing claims decide"
            problems.append(SpecProblem("decisive_claim_ids", message))
    if problems:
        raise InvalidError("judgement", tuple(problems))
    return judgement


def undecided_judgement(reason: str) -> Judgement:
    """A pass that gave no judgement that counts."""
    return Judgement(winner=UNDECIDED, confidence=0.0, reasons={"invalid": reason})


def verdict(debate: Debate, passes: Sequence[Judgement]) -> Verdict:
    """What both passes say together.

    Raises:
        ValueError: there is no pass.
    """
    if not passes:
        raise ValueError("a verdict needs at least one pass of the judge")
    mean = sum(judgement.confidence for judgement in passes) / len(passes)
    decisive = tuple(dict.fromkeys(ident for judgement in passes for ident in judgement.decisive_claim_ids))
    winners = {judgement.winner for judgement in passes}
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
    return given.model_copy(update={"operator": single_spaced(operator)[:2_000]})
