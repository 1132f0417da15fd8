"""What pictures show: budgets as they burn, gains of candidates, who works with whom, events per second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import cos, isfinite, pi, sin
from typing import TYPE_CHECKING

from app.projection.steering_text import forecast_text, shown_amount
from engine.agent.steering.budget_status import BudgetStatusLine
from engine.core.budgets import BudgetKind, Spent
from engine.core.journal import Event
from engine.core.state import AgentState
from engine.core.text import clean_line, short_duration
from widgets.base.facts import Fact
from widgets.dialogs.picture import BAR, DOTS, EDGE, POINT, RULE, Curve, Picture

if TYPE_CHECKING:  # who looks at budgets needs neither
    from engine.core.improvement import Campaign
    from engine.crew.state import CrewState
    from engine.memory.search import SearchMatch

CANDIDATES = 16
"""Candidates of a campaign that are drawn: the newest."""
HANDOFFS = 200
"""Handoffs from which the crew is drawn: the newest."""
COUNTED = 3_000
"""Events that are looked at, the newest, for how many there are each second."""
RATE_S = 60
"""Seconds over which events are counted."""


# ------------------------------------------------------------------ budgets


def burn(states: Sequence[AgentState], goal: str, line: BudgetStatusLine) -> Picture:
    """What a goal, or with none the agent, took with each step until now, and what it is expected to take."""
    points = sorted({_progress(state, goal, line.kind)[:2] for state in states})
    now, total = states[-1], float(_progress(states[-1], goal, line.kind)[2])
    here = _progress(now, goal, line.kind)[:2]
    curves = [Curve(tuple(points), "taken")]
    words = [Fact("taken", f"{shown_amount(line.kind, line.taken)} in {here[0]:g} of {total:g} steps")]
    if (ends := line.forecast) is not None and total > here[0]:
        for name, amount in (("likely", ends.likely), ("", ends.low), ("", ends.high)):
            curves.append(Curve((here, (total, amount)), name, "warning", DOTS))
        words.append(Fact("expected", forecast_text(line.kind, ends)))
    if line.limit is not None:
        curves.append(Curve(((0.0, line.limit), (max(total, 1.0), line.limit)), "limit", "error", RULE))
        words.append(Fact("limit", shown_amount(line.kind, line.limit)))
    title = f"{line.kind.value} of {f'goal {goal}' if goal else now.agent_id}"
    return Picture(title, tuple(curves), tuple(words), across="steps done")


def _progress(state: AgentState, goal: str, kind: BudgetKind) -> tuple[float, float, int]:
    """Steps that are done, what was taken, and steps in all."""
    scope = [each for each in state.goals if not goal or any(up.id == goal for up in state.lineage(each))]
    steps = [step for each in scope if each in state.plans for step in state.plans[each].steps]
    taken = sum((state.spent[each] for each in scope if each in state.spent), Spent())
    return float(sum(step.status.terminal for step in steps)), taken.of(kind), len(steps)


# ------------------------------------------------------------------ campaigns


def gains(campaign: Campaign) -> Picture:
    """The interval of each candidate's gain; right of the line is better than what there is."""
    judged = [
        (clean_line(each.id), each.verdict.gain, each.verdict.ruling.value)
        for each in campaign.candidates
        if each.verdict is not None and (gain := each.verdict.gain) and isfinite(gain.low + gain.high)
    ][-CANDIDATES:]
    curves = [Curve(((0.0, 0.5), (0.0, len(judged) + 0.5)), "", "text", EDGE)] if judged else []
    words = []
    for at, (name, gain, ruling) in enumerate(judged, 1):
        style = "success" if gain.low > 0 else "error" if gain.high < 0 else "warning"
        curves.append(Curve(((gain.low, float(at)), (gain.high, float(at))), "", style, RULE))
        curves.append(Curve(((gain.mean, float(at)),), "", style, POINT))
        text = f"{clean_line(gain.words)} ({gain.low:+.3g} to {gain.high:+.3g}), {ruling}"
        words.append(Fact(name, text, style))
    words = words or [Fact("", "no candidate was measured yet")]
    names = tuple(name for name, _, _ in judged)
    return Picture(
        f"Gains in {campaign.id}", tuple(curves), tuple(words), "gain, with its 95 % interval", names
    )


def costs(campaign: Campaign) -> Picture:
    """The best gain that was shown, over the processor seconds of judging."""
    spent, best, points = 0.0, 0.0, [(0.0, 0.0)]
    for verdict in (each.verdict for each in campaign.candidates if each.verdict is not None):
        spent += verdict.seconds
        points.append((spent, best))
        if verdict.gain is not None and verdict.ruling.value == "better":
            best = max(best, verdict.gain.low)
        points.append((spent, best))
    words = Fact("", f"{best:.3g} after {spent:.1f} s of processor" if spent else "nothing was judged yet")
    curves = (Curve(tuple(points), "best gain shown", "success"),) if spent else ()
    return Picture(f"Costs of {campaign.id}", curves, (words,), "processor seconds")


# ------------------------------------------------------------------ the crew


def crew(state: CrewState) -> Picture:
    """Who handed work to whom: what is open is lit up, what failed is red."""
    handoffs = [each for each in state.handoffs.values() if not each.proof][-HANDOFFS:]
    runs = {each.run: each.agent for each in handoffs if each.run}
    edges: dict[tuple[str, str], Counter[str]] = {}
    for each in handoffs:
        edge = clean_line(runs.get(each.caller, each.caller) or "you"), clean_line(each.agent)
        failed = each.result is not None and not each.result.success
        edges.setdefault(edge, Counter())["at work" if each.open else "failed" if failed else "over"] += 1
    nodes = list(dict.fromkeys(node for edge in edges for node in edge))
    places = {
        node: (sin(2 * pi * at / len(nodes)), cos(2 * pi * at / len(nodes))) for at, node in enumerate(nodes)
    }
    curves, words = [], []
    for edge, counts in sorted(edges.items(), key=lambda item: bool(item[1]["at work"])):
        style = "accent" if counts["at work"] else "error" if counts["failed"] else "text"
        ends = (places[edge[0]], places[edge[1]])
        curves.append(Curve(ends, "", style, POINT if counts["at work"] else DOTS))
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        words.append(Fact("", f"{edge[0]} → {edge[1]}: {told}", style))
    busy = {edge[1] for edge, counts in edges.items() if counts["at work"]}
    labels = tuple(
        (f" {'▶ ' if node in busy else ''}{node} ", *places[node], "accent" if node in busy else "text")
        for node in nodes
    )
    words = words[::-1] or [Fact("", "nothing was handed over yet")]
    return Picture("The crew", tuple(curves), tuple(words), labels=labels, framed=False)


# ------------------------------------------------------------------ memory and events


def recalls(found: Iterable[SearchMatch], now: float) -> Picture:
    """How often the agent recalled what a search found, the most often recalled above."""
    recalled = (match.memory for match in found if match.memory.access_count)
    most = sorted(recalled, key=lambda memory: memory.access_count)[-CANDIDATES:]
    curves, words = list[Curve](), list[Fact]()
    for at, memory in enumerate(most, 1):
        curves.append(Curve(((0.0, float(at)), (float(memory.access_count), float(at))), "", sign=BAR))
        last = f", last {short_duration(now - (memory.accessed_at or now))} ago"
        text = f"{memory.access_count} times{last}: {clean_line(memory.content, limit=80)}"
        words.insert(0, Fact(clean_line(memory.id), text))
    words = words or [Fact("", "nothing of what was found was recalled yet")]
    names = tuple(clean_line(memory.id) for memory in most)
    return Picture("Memories", tuple(curves), tuple(words), "times recalled", names)


def rate(events: Iterable[Event], now: datetime) -> Picture:
    """How many events each of the last seconds had."""
    ages = (int((now - datetime.fromisoformat(event.at)).total_seconds()) for event in events)
    counts = Counter(age for age in ages if 0 <= age < RATE_S)
    points = tuple((float(-age), float(counts[age])) for age in range(RATE_S - 1, -1, -1))
    most, total = max(counts.values(), default=0), sum(counts.values())
    words = (Fact("", f"{total:,} events in {RATE_S} s, {most:,} in the busiest second"),)
    return Picture("Events per second", (Curve(points, "events"),), words, "seconds ago")
