"""The model of the dialog on a debate; the ledger is the run's own."""

from __future__ import annotations

from typing import Any, cast

from app.projection.fleet_views import handoff_status, open_request
from engine.core.agents import DEBATE
from engine.crew.methods.debate import ROUNDS_MOST, Claim, Debate, Turn, begin, with_rounds
from engine.crew.methods.debate_judge import Verdict
from engine.crew.ontology.context import HumanRequest
from engine.crew.state import CrewState, Handoff
from widgets.base.facts import Fact
from widgets.dialogs.debate import Card, Column, DebateModel, DebateWish, Pass

_STYLES = {"standing": "success", "unverified": "warning", "rebutted": "error", "conceded": "dim"}
ROUND, CONTESTED, OVERRIDE = "debate.round", "DEBATE_CONTESTED", "override"


def debate(state: CrewState, handoff: Handoff, message: str = "") -> DebateModel:
    """A debate as its run kept it last."""
    held = debate_of(handoff)
    if held is None:
        return DebateModel(handoff=handoff.id, state=handoff_status(handoff), said="it has no debate")
    request = between(state, handoff.id)
    verdict = _verdict_of(handoff)
    return DebateModel(
        handoff=handoff.id,
        motion=held.motion,
        state=f"{handoff_status(handoff)} · {_round(held)}"
        + (" · step mode" if handoff.as_running.steps else ""),
        columns=tuple(Column(side.label, side.agent_id, side.stance) for side in held.spec.sides),
        cards=tuple(card for turn in held.turns for card in _cards(held, turn)),
        ledger=", ".join(f"{count} {name}" for name, count in held.ledger.items()),
        calls=f"{held.calls} of {len(held.labels) * (1 + held.rounds) + 2} calls",
        passes=_passes(held, verdict),
        verdict=_facts(handoff, verdict, _operators(state, handoff.id)),
        asked=request.id if request is not None else "",
        may=_may(state, handoff, held, request),
        why_not=_why_not(handoff, held, request),
        said=message,
    )


def debate_of(handoff: Handoff) -> Debate | None:
    """The debate of a handoff; before its first turn as it begins. None where its agent does not debate."""
    kept = handoff.progress.get(DEBATE)
    if isinstance(kept, dict) and "motion" in kept:
        return Debate.loaded(kept)[0]
    spec = handoff.spec.debate if handoff.spec is not None else None
    motion = str(handoff.context.metadata.get("motion") or handoff.context.task_description)
    spec = with_rounds(spec, handoff.context.metadata) if spec is not None else None
    return begin(spec, motion) if spec is not None and (spec.motion or motion).strip() else None


def between(state: CrewState, handoff: str) -> HumanRequest | None:
    """The question between two rounds how it goes on."""
    return open_request(state, handoff, ROUND)


def contested(state: CrewState, handoff: str) -> HumanRequest | None:
    """The question what the operator says of passes that differ."""
    return open_request(state, handoff, CONTESTED)


def _verdict_of(handoff: Handoff) -> Verdict | None:
    kept = handoff.progress.get("verdict")
    return Verdict.loaded(kept)[0] if isinstance(kept, dict) else None


def _round(held: Debate) -> str:
    if held.ended:
        return f"ended after round {held.closed}: {held.ended}"
    if held.closed < 0:
        return f"openings under way, {held.rounds} rounds planned"
    return f"round {held.closed} of {held.rounds} is over"


def _cards(held: Debate, turn: Turn) -> list[Card]:
    """What a side said in a round: restated, answers, new claims, what was not taken."""

    def card(name: str, head: str, style: str, text: str, answers: tuple[str, ...] = ()) -> Card:
        ident, kind = f"{turn.side}/{turn.round}/{name}", "reply" if answers else "note"
        return Card(ident, turn.side, turn.round, cast(Any, kind), head, style, text, answers)

    cards = [card("restated", "restates", "dim", turn.restated)]
    for number, reply in enumerate(turn.replies):
        style = "dim" if reply.kind == "concede" else "accent"
        head = f"→ {reply.claim} {reply.kind}s it"
        cards.append(card(f"reply{number}", head, style, reply.text, (reply.claim,)))
    if turn.no_rebuttal:
        cards.append(card("none", "! no rebuttal", "warning", ""))
    cards += [_claim_card(claim) for ident in turn.claims if (claim := held.claim(ident)) is not None]
    cards.append(card("for", "recommends", "dim", turn.recommends))
    if turn.dropped:
        cards.append(card("dropped", "! not taken", "warning", "; ".join(turn.dropped)))
    return [each for each in cards if each.text or each.kind != "note" or each.head.startswith("!")]


def _claim_card(claim: Claim) -> Card:
    mark = _evidence(claim)
    more = "\n".join(
        f"{'✓ quoted' if quote.verified else '? unverified'}: “{quote.quote}” ({quote.source or 'no source'})"
        for quote in claim.evidence
    )
    head = f"{claim.id} {mark} · {claim.status}"
    return Card(claim.id, claim.side, claim.round, "claim", head, _STYLES[claim.shown], claim.text, more=more)


def _evidence(claim: Claim) -> str:
    if claim.unverified or any(not quote.verified for quote in claim.evidence):
        return "? unverified"
    return "✓ quoted" if claim.evidence else "· no quote"


def _passes(held: Debate, verdict: Verdict | None) -> tuple[Pass, ...]:
    if verdict is None:
        return ()
    orders = (held.labels, tuple(reversed(held.labels)))
    return tuple(
        Pass(
            f"pass {at + 1}, order {', '.join(orders[at % 2])}: {judgement.winner} {judgement.confidence:g}",
            (
                f"decided by {', '.join(judgement.decisive_claim_ids) or 'no claim'}",
                *(f"{name}: {words}" for name, words in judgement.reasons.items()),
            ),
        )
        for at, judgement in enumerate(verdict.passes)
    )


def _operators(state: CrewState, handoff: str) -> str:
    """What the operator said of passes that differ; it stands beside the verdict."""
    answers = [
        request.answer.text or str(request.answer.option_id)
        for request in state.requests.values()
        if request.handoff_id == handoff and request.reason_code == CONTESTED and request.answer is not None
    ]
    return answers[-1] if answers else ""


def _facts(handoff: Handoff, verdict: Verdict | None, operators: str) -> tuple[Fact, ...]:
    if verdict is None:
        failed = handoff.result.error if handoff.result is not None else None
        return (Fact("no verdict", failed, "error"),) if failed else ()
    words = f"{verdict.winner}, confidence {verdict.confidence:g}"
    words += ", contested: the passes differ" if verdict.contested else ""
    facts = [Fact("verdict", words, "warning" if verdict.contested else "success")]
    if operators or verdict.operator:
        facts.append(Fact("yours", operators or verdict.operator, "accent"))
    facts.append(Fact("decided", ", ".join(verdict.decisive) or "by no claim"))
    facts += [Fact("dissent" if at == 0 else "", opinion) for at, opinion in enumerate(verdict.dissent)]
    return tuple(facts if verdict.dissent else [*facts, Fact("dissent", "none: nothing of it stands", "dim")])


def _may(
    state: CrewState, handoff: Handoff, held: Debate, request: HumanRequest | None
) -> frozenset[DebateWish]:
    may: set[DebateWish] = {"cancel", "step_mode"} if handoff.open else set()
    options = {option.id for option in request.options} if request is not None else set()
    if "go_on" in options:
        may.add("go_on")
    if "note" in options:
        may |= {"question", "evidence"}
    if "round" in options and held.rounds < ROUNDS_MOST:
        may.add("round")
    if "time" in options:
        may.add("time")
    if OVERRIDE in options or contested(state, handoff.id) is not None:
        may.add("override")
    return frozenset(may)


def _why_not(handoff: Handoff, held: Debate, request: HumanRequest | None) -> str:
    if not handoff.open:
        return f"the debate is over ({handoff.state.words})"
    if request is not None:
        return f"a debate has at most {ROUNDS_MOST} rounds" if held.rounds >= ROUNDS_MOST else "not now"
    if not handoff.as_running.steps:
        return "this debate goes through without a halt; s has it ask you after each round"
    return "a round is under way; you are asked when it is over"
