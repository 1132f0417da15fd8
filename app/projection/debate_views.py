"""The model of the dialog on a debate; the ledger is the run's own."""

from __future__ import annotations

from app.projection.crew_parts import asked, standing
from engine.agents.human import HumanRequest
from engine.agents.methods.debate import ROUNDS_MOST, Claim, Debate, Turn, begin, with_rounds
from engine.agents.methods.judging import Verdict
from engine.crew.state import CrewState, Handoff
from engine.domain.running import DEBATE
from widgets.debate_board import Card, Column
from widgets.dialogs.debate import DebateModel, DebateWish, Pass
from widgets.facts import Fact

_STYLES = {"standing": "success", "unverified": "warning", "rebutted": "error", "conceded": "dim"}
ROUND, CONTESTED, OVERRIDE = "debate.round", "DEBATE_CONTESTED", "override"


def debate(state: CrewState, handoff: Handoff, said: str = "") -> DebateModel:
    """A debate as its run kept it last."""
    held = debate_of(handoff)
    if held is None:
        return DebateModel(handoff=handoff.id, state=standing(handoff), said="it has no debate")
    request = between(state, handoff.id)
    verdict = _verdict_of(handoff)
    return DebateModel(
        handoff=handoff.id,
        motion=held.motion,
        state=f"{standing(handoff)} · {_round(held)}" + (" · step mode" if handoff.as_running.steps else ""),
        columns=tuple(Column(side.label, side.agent_id, side.stance) for side in held.spec.sides),
        cards=tuple(card for turn in held.turns for card in _cards(held, turn)),
        ledger=", ".join(f"{count} {name}" for name, count in held.ledger.items()),
        calls=f"{held.calls} of {len(held.labels) * (1 + held.rounds) + 2} calls",
        passes=_passes(held, verdict),
        verdict=_facts(handoff, verdict, _operators(state, handoff.id)),
        asked=request.id if request is not None else "",
        may=_may(state, handoff, held, request),
        why_not=_why_not(handoff, held, request),
        said=said,
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
    return asked(state, handoff, ROUND)


def contested(state: CrewState, handoff: str) -> HumanRequest | None:
    """The question what the operator says of passes that differ."""
    return asked(state, handoff, CONTESTED)


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
    at = f"{turn.side}/{turn.round}"
    found = [Card(f"{at}/restated", turn.side, turn.round, "note", "restates", "dim", turn.restated)]
    for number, one in enumerate(turn.replies):
        head = f"→ {one.claim} {one.kind}s it"
        style = "dim" if one.kind == "concede" else "accent"
        found.append(
            Card(f"{at}/reply{number}", turn.side, turn.round, "reply", head, style, one.text, (one.claim,))
        )
    if turn.no_rebuttal:
        found.append(Card(f"{at}/none", turn.side, turn.round, "note", "! no rebuttal", "warning", ""))
    found += [_claim_card(claim) for ident in turn.claims if (claim := held.claim(ident)) is not None]
    if turn.recommends:
        found.append(Card(f"{at}/for", turn.side, turn.round, "note", "recommends", "dim", turn.recommends))
    if turn.dropped:
        dropped = "; ".join(turn.dropped)
        found.append(Card(f"{at}/dropped", turn.side, turn.round, "note", "! not taken", "warning", dropped))
    return [one for one in found if one.text or one.kind != "note" or one.head.startswith("!")]


def _claim_card(claim: Claim) -> Card:
    mark = _evidence(claim)
    more = "\n".join(
        f"{'✓ quoted' if one.verified else '? unverified'}: “{one.quote}” ({one.source or 'no source'})"
        for one in claim.evidence
    )
    head = f"{claim.id} {mark} · {claim.status}"
    return Card(claim.id, claim.side, claim.round, "claim", head, _STYLES[claim.shown], claim.text, more=more)


def _evidence(claim: Claim) -> str:
    if claim.unverified or any(not one.verified for one in claim.evidence):
        return "? unverified"
    return "✓ quoted" if claim.evidence else "· no quote"


def _passes(held: Debate, verdict: Verdict | None) -> tuple[Pass, ...]:
    if verdict is None:
        return ()
    orders = (held.labels, tuple(reversed(held.labels)))
    return tuple(
        Pass(
            f"pass {at + 1}, order {', '.join(orders[at % 2])}: {one.winner} {one.confidence:g}",
            (
                f"decided by {', '.join(one.decisive_claim_ids) or 'no claim'}",
                *(f"{name}: {words}" for name, words in one.reasons.items()),
            ),
        )
        for at, one in enumerate(verdict.passes)
    )


def _operators(state: CrewState, handoff: str) -> str:
    """What the operator said of passes that differ; it stands beside the verdict."""
    said = [
        one.answer.text or str(one.answer.option_id)
        for one in state.requests.values()
        if one.handoff_id == handoff and one.reason_code == CONTESTED and one.answer is not None
    ]
    return said[-1] if said else ""


def _facts(handoff: Handoff, verdict: Verdict | None, operators: str) -> tuple[Fact, ...]:
    if verdict is None:
        failed = handoff.result.error if handoff.result is not None else None
        return (Fact("no verdict", failed, "error"),) if failed else ()
    said = f"{verdict.winner}, confidence {verdict.confidence:g}"
    said += ", contested: the passes differ" if verdict.contested else ""
    facts = [Fact("verdict", said, "warning" if verdict.contested else "success")]
    if operators or verdict.operator:
        facts.append(Fact("yours", operators or verdict.operator, "accent"))
    facts.append(Fact("decided", ", ".join(verdict.decisive) or "by no claim"))
    facts += [Fact("dissent" if at == 0 else "", one) for at, one in enumerate(verdict.dissent)]
    return tuple(facts if verdict.dissent else [*facts, Fact("dissent", "none: nothing of it stands", "dim")])


def _may(
    state: CrewState, handoff: Handoff, held: Debate, request: HumanRequest | None
) -> frozenset[DebateWish]:
    may: set[DebateWish] = {"cancel", "step_mode"} if handoff.open else set()
    options = {one.id for one in request.options} if request is not None else set()
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
