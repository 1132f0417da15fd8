"""A debate: blind openings, simultaneous rebuttals and a ledger of claims (ontology spec §1.11).

Pure. The ledger is code, not prose: the judge (`engine.agents.methods.judging`) and the screen read
the same one. A round
is closed at once with the turns of all sides, so that nobody sees anything of the round that is under way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from engine.agents.criteria import count_words, plain, quoted
from engine.agents.kinds import Word
from engine.agents.spec import DebateSpec
from engine.agents.values import InvalidError, Line, Problem, Value
from engine.domain.fence import fence

CLAIMS_MOST = 5
ROUNDS_MOST = 4
TEXT_MOST = 2_000


class ClaimStatus(Word):
    """What became of a claim."""

    STANDING = "standing"
    REBUTTED = "rebutted"
    """Answered, and not defended in the round after."""
    CONCEDED = "conceded"


class Evidence(Value):
    """What a claim rests on."""

    source: str = ""
    quote: str = Field(default="", max_length=TEXT_MOST)
    verified: bool = False
    """Whether the quote stands in the source, word for word."""


class Claim(Value):
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


class Reply(Value):
    """What a turn says of a claim."""

    claim: str
    kind: Literal["refute", "undercut", "concede", "defend"]
    text: str = Field(default="", max_length=TEXT_MOST)


class Turn(Value):
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


class Debate(Value):
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

    def standing(self, side: str = "") -> tuple[Claim, ...]:
        """The claims that stand, of a side or of all."""
        return tuple(
            claim
            for claim in self.claims
            if claim.status is ClaimStatus.STANDING and side in ("", claim.side)
        )

    @property
    def ledger(self) -> dict[str, int]:
        """How many claims there are of each status."""
        counts = {"standing": 0, "unverified": 0, "rebutted": 0, "conceded": 0}
        for claim in self.claims:
            counts[claim.shown] += 1
        return counts


class _Given(Value):
    """A claim as a side gives it."""

    text: Line
    evidence: tuple[Evidence, ...] = Field(default=(), max_length=10)


class Said(Value):
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
    said = plain(spec.motion or motion)
    if not said:
        raise InvalidError(
            "debate", (Problem(path="motion", message="a sentence that can be decided is needed"),)
        )
    return Debate(motion=said[:TEXT_MOST], spec=spec, rounds=spec.rounds)


def read_said(debate: Debate, side: str, given: Mapping[str, Any]) -> tuple[Said, tuple[str, ...]]:
    """What a side said, and what is wrong with it, for its one repair.

    Raises:
        InvalidError: it has not the form of a turn.
    """
    said = Said.read(given, "turn")
    wrong: list[str] = []
    words = count_words(
        " ".join((said.restated, *(r.text for r in said.replies), *(c.text for c in said.claims)))
    )
    if words > debate.spec.max_words:
        wrong.append(f"say it in {debate.spec.max_words} words; these are {words}")
    if debate.now == 0:
        if not said.claims:
            wrong.append("an opening makes one to five claims")
        return said, tuple(wrong)
    if not said.restated.strip():
        wrong.append("restate the strongest claim of the other side in one sentence first")
    if not _replies(debate, side, said)[0]:
        known = ", ".join(claim.id for claim in debate.standing() if claim.side != side) or "none"
        wrong.append(f"answer at least one standing claim of the other side by its id ({known})")
    return said, tuple(wrong)


def close_round(debate: Debate, said: Mapping[str, Said], sources: Mapping[str, str] | None = None) -> Debate:
    """The debate after a round: the turns of all sides at once.

    Args:
        debate: as the sides saw it.
        said: what each side said; all sides are there.
        sources: what can be quoted, by its name.

    Raises:
        ValueError: a side is missing, or no round is under way.
    """
    if debate.ended or set(said) != set(debate.labels):
        raise ValueError("a round is closed with a turn of each side")
    claims = {claim.id: claim for claim in debate.claims}
    turns = []
    for side in debate.labels:
        turn, added, replies = _turn(debate, side, said[side], sources or {})
        turns.append(turn)
        claims |= {claim.id: claim for claim in added}
        _apply(claims, replies, side, debate.now)
    _settle(claims, debate.now)
    after = debate.model_copy(
        update={
            "claims": tuple(claims.values()),
            "turns": (*debate.turns, *turns),
            "closed": debate.now,
            "notes": (),
        }
    )
    return after.model_copy(update={"ended": _why_over(debate, after, turns)})


def _turn(
    debate: Debate, side: str, said: Said, sources: Mapping[str, str]
) -> tuple[Turn, list[Claim], list[Reply]]:
    replies, dropped = _replies(debate, side, said)
    kept = [*replies, *_own(debate, side, said)]
    added: list[Claim] = []
    if debate.last and said.claims:
        dropped += [f"new claim in the last round: {plain(one.text)[:80]}" for one in said.claims]
    else:
        before = sum(claim.side == side for claim in debate.claims)
        added = [
            _claim(debate, side, before + number, one, sources) for number, one in enumerate(said.claims, 1)
        ]
    turn = Turn(
        side=side,
        round=debate.now,
        restated=plain(said.restated),
        replies=tuple(kept),
        claims=tuple(claim.id for claim in added),
        recommends=plain(said.recommends),
        no_rebuttal=debate.now > 0 and not replies,
        dropped=tuple(dropped),
    )
    return turn, added, kept


def _replies(debate: Debate, side: str, said: Said) -> tuple[list[Reply], list[str]]:
    """The answers to claims of others that stand, and what was dropped."""
    kept, dropped = [], []
    for reply in said.replies:
        claim = debate.claim(reply.claim)
        if claim is None:
            dropped.append(f"{reply.claim} is no claim")
        elif claim.side == side:
            if reply.kind in ("refute", "undercut"):
                dropped.append(f"{reply.claim} is its own: a side does not change sides")
        elif reply.kind not in ("refute", "undercut"):
            dropped.append(f"{reply.claim} is not its own to {reply.kind}")
        elif claim.status is not ClaimStatus.STANDING:
            dropped.append(f"{reply.claim} is {claim.status} already")
        else:
            kept.append(reply)
    return kept, dropped


def _own(debate: Debate, side: str, said: Said) -> list[Reply]:
    return [
        reply
        for reply in said.replies
        if reply.kind in ("concede", "defend")
        and (claim := debate.claim(reply.claim)) is not None
        and claim.side == side
        and claim.status is ClaimStatus.STANDING
    ]


def _claim(debate: Debate, side: str, number: int, given: _Given, sources: Mapping[str, str]) -> Claim:
    checked = tuple(
        Evidence(
            source=one.source,
            quote=one.quote,
            verified=bool(one.quote.strip()) and quoted(one.quote, sources, one.source or None),
        )
        for one in given.evidence
    )
    rule = debate.spec.evidence
    doubtful = any(not one.verified for one in checked) or (rule == "required" and not checked)
    return Claim(
        id=f"{side}{number}",
        side=side,
        text=plain(given.text),
        evidence=checked,
        round=debate.now,
        unverified=rule != "off" and doubtful,
    )


def _apply(claims: dict[str, Claim], replies: Sequence[Reply], side: str, now: int) -> None:
    for reply in replies:
        claim = claims[reply.claim]
        if reply.kind == "concede":
            claims[claim.id] = claim.model_copy(update={"status": ClaimStatus.CONCEDED, "attacked": None})
        elif reply.kind == "defend" and claim.attacked is not None and claim.attacked < now:
            claims[claim.id] = claim.model_copy(update={"attacked": None})
        elif reply.kind in ("refute", "undercut") and claim.attacked is None:
            claims[claim.id] = claim.model_copy(update={"attacked": now})


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
        wanted = {turn.recommends.casefold().strip(" .!") for turn in turns}
        if len(wanted) == 1 and wanted != {""}:
            return "consensus"
        same = [claim.status for claim in before.claims] == [claim.status for claim in after.claims]
        attacked = [claim.attacked for claim in before.claims] == [claim.attacked for claim in after.claims]
        if same and attacked:
            return "nothing new"
    return "rounds done" if after.closed >= after.rounds else ""


# ------------------------------------------------------------------ what a side is told


def told(debate: Debate, side: str) -> str:
    """What a side is told before its turn: all that is over, and nothing of the round under way."""
    stance = next(one.stance for one in debate.spec.sides if one.label == side)
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
            f"  {'quoted' if one.verified else 'unverified'}: “{one.quote}” ({one.source or 'no source'})"
            for one in claim.evidence
        ]
        lines += [
            f"  {turn.side} {reply.kind}s it in round {turn.round}: {plain(reply.text)}"
            for turn in debate.turns
            for reply in turn.replies
            if reply.claim == claim.id
        ]
    return "\n".join(lines)


# ------------------------------------------------------------------ the operator between rounds


def note(debate: Debate, text: str) -> Debate:
    """A question or a piece of evidence that every side answers in the next round."""
    return debate.model_copy(update={"notes": (*debate.notes, plain(text)[:TEXT_MOST])})


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
