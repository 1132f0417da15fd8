"""A debate: blind openings, simultaneous rebuttals and a ledger of claims, as pure functions.

The ledger is code, not prose: the judge (`engine.crew.methods.debate_judge`) and the screen read the same
one. A round is closed at once with the turns of all sides, so that no side sees anything of the open round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from engine.core.text import fence
from engine.crew.ontology.criteria import count_words, quoted, single_spaced
from engine.crew.ontology.kinds import InvalidError, Line, OntologyValue, OntologyWord, SpecProblem
from engine.crew.ontology.spec import DebateSpec

CLAIMS_MOST = 5
ROUNDS_MOST = 4
TEXT_MOST = 2_000


class ClaimStatus(OntologyWord):
    """Whether a claim still holds."""

    STANDING = "standing"
    REBUTTED = "rebutted"
    """Answered, and not defended in the round after."""
    CONCEDED = "conceded"


class Evidence(OntologyValue):
    """What a claim rests on."""

    source: str = ""
    quote: str = Field(default="", max_length=TEXT_MOST)
    verified: bool = False
    """Whether the quote stands in the source, word for word."""


class Claim(OntologyValue):
    """A claim of a side, under an id such as `A1`."""

    id: str
    side: str
    text: str
    evidence: tuple[Evidence, ...] = ()
    status: ClaimStatus = ClaimStatus.STANDING
    round: int = 0
    attacked: int | None = None
    """The round in which it was answered and not yet defended."""
    unverified: bool = False
    """Its evidence is not in its sources, or it has none where evidence is required."""

    @property
    def shown(self) -> str:
        """Its status as the ledger shows it."""
        return "unverified" if self.status is ClaimStatus.STANDING and self.unverified else self.status.value


class Reply(OntologyValue):
    """What a turn says of a claim."""

    claim: str
    kind: Literal["refute", "undercut", "concede", "defend"]
    text: str = Field(default="", max_length=TEXT_MOST)


class Turn(OntologyValue):
    """What a side says in a round."""

    side: str
    round: int
    restated: str = ""
    """The strongest claim of the others, in its words."""
    replies: tuple[Reply, ...] = ()
    claims: tuple[str, ...] = ()
    """Ids of the claims that it added."""
    recommends: str = ""
    """The action that it is for."""
    no_rebuttal: bool = False
    """It answered no claim that there is, twice."""
    dropped: tuple[str, ...] = ()
    """What it said and was not taken, with the reason."""


class Debate(OntologyValue):
    """A debate as it stands."""

    motion: str
    spec: DebateSpec
    claims: tuple[Claim, ...] = ()
    turns: tuple[Turn, ...] = ()
    closed: int = -1
    """The last round that is over; 0 is the openings."""
    rounds: int
    """Rebuttal rounds that are planned by now."""
    notes: tuple[str, ...] = ()
    """The operator's questions and evidence that every side answers in the next round."""
    ended: str = ""
    """Why no round follows: `rounds done`, `nothing new`, `conceded`, `consensus`, `called by the
    operator`.
    """
    calls: int = 0

    @property
    def labels(self) -> tuple[str, ...]:
        """The sides, in order."""
        return tuple(side.label for side in self.spec.sides)

    @property
    def now(self) -> int:
        """The round that is under way."""
        return self.closed + 1

    @property
    def last(self) -> bool:
        """Whether the round under way is the last: no new claims."""
        return self.now >= self.rounds and self.now > 0

    def claim(self, ident: str) -> Claim | None:
        """A claim by its id."""
        return next((claim for claim in self.claims if claim.id == ident), None)

    def standing(self) -> tuple[Claim, ...]:
        """The claims that stand."""
        return tuple(claim for claim in self.claims if claim.status is ClaimStatus.STANDING)

    @property
    def ledger(self) -> dict[str, int]:
        """How many claims there are of each status."""
        counts = {"standing": 0, "unverified": 0, "rebutted": 0, "conceded": 0}
        for claim in self.claims:
            counts[claim.shown] += 1
        return counts


class _Given(OntologyValue):
    """A claim as a side gives it."""

    text: Line
    evidence: tuple[Evidence, ...] = Field(default=(), max_length=10)


class TurnAnswer(OntologyValue):
    """A turn as a side gives it; the form of the tool by which a model answers."""

    claims: tuple[_Given, ...] = Field(default=(), max_length=CLAIMS_MOST)
    """New claims, with quotes of their sources where there are any."""
    restated: str = Field(default="", max_length=TEXT_MOST)
    """In a rebuttal: the strongest claim of the other side, in one sentence."""
    replies: tuple[Reply, ...] = Field(default=(), max_length=20)
    """In a rebuttal: `refute` or `undercut` a claim of the other side, `defend` or `concede` one of
    your own, by its id.
    """
    recommends: str = Field(default="", max_length=500)
    """The action that follows from your side, in a few words."""


ROUNDS = "rounds"
"""Where a handoff's metadata may say how many rounds a debate has, other than its specification does."""


def with_rounds(spec: DebateSpec, metadata: Mapping[str, Any]) -> DebateSpec:
    """The debate with the rounds that were asked for."""
    asked = metadata.get(ROUNDS)
    fits = isinstance(asked, int) and not isinstance(asked, bool) and 1 <= asked <= ROUNDS_MOST
    return spec.model_copy(update={"rounds": asked}) if fits else spec


def begin(spec: DebateSpec, motion: str) -> Debate:
    """A debate before its openings.

    Raises:
        InvalidError: there is no motion.
    """
    text = single_spaced(spec.motion or motion)
    if not text:
        raise InvalidError("debate", (SpecProblem("motion", "a sentence that can be decided is needed"),))
    return Debate(motion=text[:TEXT_MOST], spec=spec, rounds=spec.rounds)


def parse_turn(debate: Debate, side: str, given: Mapping[str, Any]) -> tuple[TurnAnswer, tuple[str, ...]]:
    """What a side said, and what is wrong with it, for its one repair.

    Raises:
        InvalidError: it has not the form of a turn.
    """
    turn = TurnAnswer.read(given, "turn")
    wrong: list[str] = []
    texts = [turn.restated, *(reply.text for reply in turn.replies), *(claim.text for claim in turn.claims)]
    words = sum(map(count_words, texts))
    if words > debate.spec.max_words:
        wrong.append(f"say it in {debate.spec.max_words} words; these are {words}")
    if debate.now == 0:
        if not turn.claims:
            wrong.append("an opening makes one to five claims")
        return turn, tuple(wrong)
    if not turn.restated.strip():
        wrong.append("restate the strongest claim of the other side in one sentence first")
    if not _replies(debate, side, turn)[0]:
        known = ", ".join(claim.id for claim in debate.standing() if claim.side != side) or "none"
        wrong.append(f"answer at least one standing claim of the other side by its id ({known})")
    return turn, tuple(wrong)


def close_round(
    debate: Debate, side_turns: Mapping[str, TurnAnswer], sources: Mapping[str, str] | None = None
) -> Debate:
    """The debate after a round: the turns of all sides at once.

    Args:
        debate: as the sides saw it.
        side_turns: what each side said; all sides are there.
        sources: what can be quoted, by its name.

    Raises:
        ValueError: a side is missing, or no round is under way.
    """
    if debate.ended or set(side_turns) != set(debate.labels):
        raise ValueError("a round is closed with a turn of each side")
    claims = {claim.id: claim for claim in debate.claims}
    turns = []
    for side in debate.labels:
        turn, added, replies = _turn(debate, side, side_turns[side], sources or {})
        turns.append(turn)
        claims |= {claim.id: claim for claim in added}
        _apply(claims, replies, side, debate.now)
    _settle(claims, debate.now)
    changed = {"claims": tuple(claims.values()), "turns": (*debate.turns, *turns), "notes": ()}
    after = debate.model_copy(update={**changed, "closed": debate.now})
    return after.model_copy(update={"ended": _why_over(debate, after, turns)})


def _turn(
    debate: Debate, side: str, turn_answer: TurnAnswer, sources: Mapping[str, str]
) -> tuple[Turn, list[Claim], list[Reply]]:
    replies, own, dropped = _replies(debate, side, turn_answer)
    kept, added = [*replies, *own], list[Claim]()
    before = 1 + sum(claim.side == side for claim in debate.claims)
    for number, claim in enumerate(turn_answer.claims, before):
        if debate.last:
            dropped.append(f"new claim in the last round: {single_spaced(claim.text)[:80]}")
        else:
            added.append(_claim(debate, side, number, claim, sources))
    turn = Turn(
        side=side,
        round=debate.now,
        restated=single_spaced(turn_answer.restated),
        replies=tuple(kept),
        claims=tuple(claim.id for claim in added),
        recommends=single_spaced(turn_answer.recommends),
        no_rebuttal=debate.now > 0 and not replies,
        dropped=tuple(dropped),
    )
    return turn, added, kept


def _replies(debate: Debate, side: str, turn: TurnAnswer) -> tuple[list[Reply], list[Reply], list[str]]:
    """The answers to claims of others that stand, what it says of its own, and what was dropped."""
    others, own, dropped = [], [], []
    for reply in turn.replies:
        claim = debate.claim(reply.claim)
        attacks = reply.kind in ("refute", "undercut")
        if claim is None:
            dropped.append(f"{reply.claim} is no claim")
        elif claim.side == side and attacks:
            dropped.append(f"{reply.claim} is its own: a side does not change sides")
        elif claim.side == side:
            own += [reply] if claim.status is ClaimStatus.STANDING else []
        elif not attacks:
            dropped.append(f"{reply.claim} is not its own to {reply.kind}")
        elif claim.status is not ClaimStatus.STANDING:
            dropped.append(f"{reply.claim} is {claim.status} already")
        else:
            others.append(reply)
    return others, own, dropped


def _claim(debate: Debate, side: str, number: int, given: _Given, sources: Mapping[str, str]) -> Claim:
    checked = tuple(
        each.model_copy(update={"verified": quoted(each.quote, sources, each.source or None)})
        for each in given.evidence
    )
    rule = debate.spec.evidence
    doubtful = any(not each.verified for each in checked) or (rule == "required" and not checked)
    return Claim(
        id=f"{side}{number}",
        side=side,
        text=single_spaced(given.text),
        evidence=checked,
        round=debate.now,
        unverified=rule != "off" and doubtful,
    )


def _apply(claims: dict[str, Claim], replies: Sequence[Reply], side: str, now: int) -> None:
    for reply in replies:
        claim, changed = claims[reply.claim], dict[str, Any]()
        if reply.kind == "concede":
            changed = {"status": ClaimStatus.CONCEDED, "attacked": None}
        elif reply.kind == "defend" and claim.attacked is not None and claim.attacked < now:
            changed = {"attacked": None}
        elif reply.kind in ("refute", "undercut") and claim.attacked is None:
            changed = {"attacked": now}
        claims[claim.id] = claim.model_copy(update=changed)


def _settle(claims: dict[str, Claim], now: int) -> None:
    """What was answered a round ago and not defended in this one is rebutted."""
    for claim in list(claims.values()):
        standing = claim.status is ClaimStatus.STANDING
        if standing and claim.attacked is not None and claim.attacked < now:
            claims[claim.id] = claim.model_copy(update={"status": ClaimStatus.REBUTTED})


def _why_over(before: Debate, after: Debate, turns: Sequence[Turn]) -> str:
    if after.closed == 0:
        return ""
    if after.spec.early_stop:
        if any(
            (own := [claim for claim in after.claims if claim.side == side])
            and all(claim.status is ClaimStatus.CONCEDED for claim in own)
            for side in after.labels
        ):
            return "conceded"
        recommended = {turn.recommends.casefold().strip(" .!") for turn in turns}
        if len(recommended) == 1 and recommended != {""}:
            return "consensus"
        stand = [[(claim.status, claim.attacked) for claim in each.claims] for each in (before, after)]
        if stand[0] == stand[1]:
            return "nothing new"
    return "rounds done" if after.closed >= after.rounds else ""


# ------------------------------------------------------------------ what a side is told


def turn_prompt(debate: Debate, side: str) -> str:
    """What a side is shown before its turn: all that is over, and nothing of the round under way."""
    stance = next(own_side.stance for own_side in debate.spec.sides if own_side.label == side)
    lines = [
        f"Motion: {debate.motion}",
        f"You are side {side}: {stance}. You may concede claims of your own; you do not change sides.",
        f"At most {debate.spec.max_words} words.",
    ]
    if debate.now == 0:
        lines.append(
            f"Make one to {CLAIMS_MOST} claims, with evidence quoted word for word where you have it."
        )
        return "\n".join(lines)
    lines += [
        f"Round {debate.now} of {debate.rounds}"
        + (": the last, in which no new claims are taken." if debate.last else "."),
        "Restate the other side's strongest claim in one sentence, then answer at least one that stands.",
        fence("the debate so far", record(debate, debate.labels)),
    ]
    if debate.notes:
        lines.append(fence("from the operator; answer it", "\n".join(debate.notes)))
    return "\n".join(lines)


def record(debate: Debate, order: Sequence[str]) -> str:
    """The claims by side in an order, with status, evidence and what was said about them."""
    return "\n\n".join(_side(debate, side) for side in order)


def _side(debate: Debate, side: str) -> str:
    lines = [f"Side {side}"]
    for claim in debate.claims:
        if claim.side != side:
            continue
        lines.append(f"{claim.id} [{claim.shown}] {claim.text}")
        lines += [
            f"  {'quoted' if shown.verified else 'unverified'}: “{shown.quote}” "
            f"({shown.source or 'no source'})"
            for shown in claim.evidence
        ]
        lines += [
            f"  {turn.side} {reply.kind}s it in round {turn.round}: {single_spaced(reply.text)}"
            for turn in debate.turns
            for reply in turn.replies
            if reply.claim == claim.id
        ]
    return "\n".join(lines)


# ------------------------------------------------------------------ the operator between rounds


def note(debate: Debate, text: str) -> Debate:
    """A question or a piece of evidence that every side answers in the next round."""
    return debate.model_copy(update={"notes": (*debate.notes, single_spaced(text)[:TEXT_MOST])})


def one_more(debate: Debate) -> Debate:
    """One round more.

    Raises:
        ValueError: there are four already.
    """
    if debate.rounds >= ROUNDS_MOST:
        raise ValueError(f"a debate has at most {ROUNDS_MOST} rounds")
    return debate.model_copy(update={"rounds": debate.rounds + 1, "ended": ""})


def call_time(debate: Debate) -> Debate:
    """No further round: it is judged as it stands.

    Raises:
        ValueError: the openings are not over.
    """
    if debate.closed < 0:
        raise ValueError("there is nothing to judge before the openings are over")
    return debate.model_copy(update={"ended": "called by the operator"})
