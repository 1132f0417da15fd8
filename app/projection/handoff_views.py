"""The timeline of handoffs: trees by lineage with bars of time, and all that is known of one (spec §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from app.projection.fleet_views import at_work_s, lasted_s, short, style_of
from engine.agents.clarity import SLOTS
from engine.agents.human import HumanRequest
from engine.agents.kinds import ConfidenceSource, HandoffState, HandoffType, Priority
from engine.agents.result import HandoffResult
from engine.crew.state import CrewState, Group, Handoff
from engine.domain.text import clean, clean_line
from widgets.dialogs.handoffs import HandoffLine, HandoffsModel, HandoffWish, Span, SpanKind
from widgets.facts import Fact

TREES = 120
"""Trees that are shown: the newest, and all with something open."""
OUTPUT_SHOWN = 6_000
"""Characters of an output or a task; what is more is said."""
SHORT_ID = 8
_LETTERS = {
    HandoffType.DELEGATE: "D",
    HandoffType.TRANSFER: "T",
    HandoffType.ESCALATE: "E",
    HandoffType.RETURN: "R",
}
_MODES = {"parallel": "P", "sequential": "S", "selective": "L", "debate": "B"}
_KINDS: dict[HandoffState, SpanKind] = {
    HandoffState.QUEUED: "queued",
    HandoffState.RUNNING: "running",
    HandoffState.WAITING_HUMAN: "waiting",
    HandoffState.PAUSED: "paused",
}
_FAILED = (
    HandoffState.FAILED,
    HandoffState.TIMED_OUT,
    HandoffState.CANCELLED,
    HandoffState.REJECTED,
)


@dataclass(slots=True)
class _Forest:
    """Who stands below whom."""

    roots: list[str] = field(default_factory=list)
    below: dict[str, list[str]] = field(default_factory=dict)


def timeline(state: CrewState, now: datetime, *, shown: str = "", said: str = "") -> HandoffsModel:
    """What the timeline shows.

    Args:
        state: what the crew knows.
        now: what time it is, aware.
        shown: the handoff, or group, that the facts are to be about; empty for the newest.
        said: what came of the last key.
    """
    forest = _forest(state)
    newest = forest.roots[::-1]
    chosen = [root for at, root in enumerate(newest) if at < TREES or _alive(state, forest, root)]
    lines = tuple(line for root in chosen for line in _tree(state, forest, root, now))
    known = {line.key for line in lines}
    shown = shown if shown in known else next(iter(known and (lines[0].key,)), "")
    told = [one for one in state.handoffs.values() if not one.proof]
    counts = Counter(one.state for one in told if one.open)
    parts = [_count(len(told), "handoff")]
    parts += [f"{count} {one.words}" for one, count in counts.items()]
    if hidden := len(newest) - len(chosen):
        parts.append(f"{hidden} older trees are not shown")
    used = [one.result.usage for one in told if one.result is not None]
    if calls := sum(usage.calls for usage in used):
        parts.append(f"{_count(calls, 'model call')}, ${sum(usage.usd for usage in used):.2f}")
    return HandoffsModel(lines, " · ".join(parts), shown, facts(state, shown, now), said)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _forest(state: CrewState) -> _Forest:
    """All but what proves new agents, which is shown with their builds."""
    forest = _Forest()
    for name, one in state.handoffs.items():
        if one.proof:
            continue
        parent = one.context.parent_id
        if parent in state.handoffs:
            forest.below.setdefault(parent, []).append(name)
        else:
            forest.roots.append(name)
    return forest


def _alive(state: CrewState, forest: _Forest, root: str) -> bool:
    return state.handoffs[root].open or any(
        _alive(state, forest, each) for each in forest.below.get(root, ())
    )


# ------------------------------------------------------------------ trees


def _tree(state: CrewState, forest: _Forest, root: str, now: datetime) -> Iterator[HandoffLine]:
    """A handoff with all below it; those of one group of the operator are one tree, behind a bracket."""
    members = _members(forest.roots, state, root)
    if members and members[-1] != root:
        return  # the group is told where its newest member stands
    whole = members or [root]
    began = min(_moment(state.handoffs[one].moves[0].at) for one in whole)
    ended = max((_end(state, forest, one, now) for one in whole), default=now)
    length = max(1.0, (ended - began).total_seconds())
    yield from _level(state, forest, whole, "", began, length, now)


def _members(roots: Sequence[str], state: CrewState, root: str) -> list[str]:
    group = state.handoffs[root].group
    return [one for one in roots if state.handoffs[one].group == group] if group in state.groups else []


def _level(
    state: CrewState, forest: _Forest, names: Sequence[str], lead: str, began: datetime, length: float,
    now: datetime,
) -> Iterator[HandoffLine]:  # fmt: skip
    """Handoffs beside each other, those of a group behind its bracket."""
    told: set[str] = set()
    for at, name in enumerate(names):
        one = state.handoffs[name]
        group = state.groups.get(one.group)
        branch = (" └ " if at == len(names) - 1 else " ├ ") if lead or at or len(names) > 1 else ""
        if group is None:
            yield _line(one, lead + branch, began, length, now)
            yield from _below(state, forest, name, lead + ("   " if branch else ""), began, length, now)
        elif group.id not in told:
            told.add(group.id)
            together = [each for each in names if state.handoffs[each].group == group.id]
            yield _heading(group, lead, now)
            for place, each in enumerate(together):
                bracket = _bracket(group, place, len(together))
                yield _line(state.handoffs[each], lead + bracket, began, length, now)
                yield from _below(state, forest, each, lead + "   ", began, length, now)


def _below(
    state: CrewState, forest: _Forest, name: str, lead: str, began: datetime, length: float, now: datetime
) -> Iterator[HandoffLine]:
    if children := forest.below.get(name):
        yield from _level(state, forest, children, lead or " ", began, length, now)


def _bracket(group: Group, place: int, count: int) -> str:
    if group.mode == "sequential":
        return " ┬ " if place == 0 else " ↓ "
    if count == 1:
        return " ╶ "
    return " ┌ " if place == 0 else " └ " if place == count - 1 else " ├ "


def _heading(group: Group, lead: str, now: datetime) -> HandoffLine:
    letter = _MODES.get(group.mode, "G")
    name = f"{letter} {group.id[:SHORT_ID]} {group.mode}: {', '.join(group.agents)}"
    if not group.ended:
        return HandoffLine(group.id, name, lead, "▶", "accent", "running", short(lasted_s(group.at, now)))
    mark, style, word = ("✓", "success", "done") if group.ok else ("✗", "error", "failed")
    why = clean_line(f"{group.code} {group.message}", limit=300).strip()
    may: frozenset[HandoffWish] = frozenset() if group.ok else frozenset({"error"})
    return HandoffLine(group.id, name, lead, mark, style, word, tail=why, may=may)


def _line(one: Handoff, lead: str, began: datetime, length: float, now: datetime) -> HandoffLine:
    letter = _LETTERS.get(one.context.handoff_type, "D")
    urgent = "!" * (one.priority - Priority.NORMAL) if one.open else ""
    again = f" (try {one.context.attempt})" if one.context.attempt > 1 else ""
    took = one.result.duration_seconds if one.result is not None else at_work_s(one, now)
    waits = one.state in (HandoffState.QUEUED, HandoffState.WAITING_HUMAN, HandoffState.PAUSED)
    return HandoffLine(
        one.id,
        f"{letter}{urgent} {one.id[:SHORT_ID]} {one.agent}{again}",
        lead,
        one.state.glyph,
        style_of(one.state),
        one.state.words,
        short(lasted_s(one.moves[-1].at, now) if waits else took),
        _spans(one, began, now),
        length,
        _tail(one),
        may_of(one),
    )


def _spans(one: Handoff, began: datetime, now: datetime) -> tuple[Span, ...]:
    ends = [*one.moves, None]
    found = []
    for move, after in pairwise(ends):
        kind = _KINDS.get(move.target) if move is not None else None
        if move is None or kind is None:
            continue
        end = _moment(after.at) if after is not None else now
        begin = (_moment(move.at) - began).total_seconds()
        found.append(Span(kind, begin, max(begin, (end - began).total_seconds())))
    return tuple(found)


def _end(state: CrewState, forest: _Forest, name: str, now: datetime) -> datetime:
    one = state.handoffs[name]
    own = now if one.open else _moment(one.moves[-1].at)
    return max([own, *(_end(state, forest, each, now) for each in forest.below.get(name, ()))])


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at)


def _tail(one: Handoff) -> str:
    result = one.result
    if result is None:
        return clean_line(one.note, limit=120)
    if result.error is not None:
        return clean_line(f"{result.error_code or ''}: {result.error}", limit=300).removeprefix(": ")
    sure = result.confidence_source is not ConfidenceSource.NONE
    return f"{result.confidence:.2f}" if sure else ""


def may_of(one: Handoff) -> frozenset[HandoffWish]:
    """What can be asked of a handoff now."""
    may: set[HandoffWish] = {"prompt"}
    if one.open:
        may |= {"cancel", "raise", "lower", "take_over"}
    if one.state in (HandoffState.RUNNING, HandoffState.PAUSED):
        may.add("pause")
    if one.state in _FAILED:
        may.add("retry")
    if one.result is not None and one.result.error is not None:
        may.add("error")
    if one.run:
        may.add("open")
    return frozenset(may)


# ------------------------------------------------------------------ what is known of one


def facts(state: CrewState, name: str, now: datetime) -> tuple[Fact, ...]:
    """All that is known of a handoff, or of a group."""
    if (group := state.groups.get(name)) is not None:
        return tuple(_of_group(group))
    one = state.handoffs.get(name)
    return tuple(_of_handoff(state, one, now)) if one is not None else ()


def _asked(request: HumanRequest) -> str:
    """A request in words, without its title where that is only the beginning of the question."""
    who, _, said = request.title.partition(": ")
    again = bool(said) and request.question.startswith(said.rstrip("…"))
    return f"{who if again else request.title}: {request.question}"


def _of_handoff(state: CrewState, one: Handoff, now: datetime) -> Iterator[Fact]:
    context = one.context
    by = f"{one.agent} {one.spec.version} ({one.spec.type})" if one.spec is not None else one.agent
    yield Fact("", f"{one.id}: {context.from_agent} → {by}", "strong")
    yield Fact("state", f"{one.state.glyph} {one.state.words}", style_of(one.state))
    for request in state.open_requests(one.id):
        yield Fact("asks", f"{request.id} {_asked(request)}", "warning")
    yield Fact("task", _cut(context.task_description))
    if context.expected_output:
        yield Fact("expected", _cut(context.expected_output))
    clarity = context.problem_clarity
    for slot in SLOTS:
        if text := clarity.text(slot):
            yield Fact(slot, f"{_cut(text)} ({clarity.score(slot):.2f})")
    for label, areas in (("focus", context.focus_areas), ("skip", context.ignore_areas)):
        if areas:
            yield Fact(label, ", ".join(areas))
    for analysis in context.previous_analyses:
        found = "; ".join(analysis.key_findings) or analysis.output
        yield Fact(
            "before", f"{analysis.framework_name or analysis.framework_id}: {clean_line(found, limit=300)}"
        )
    limit = f" of {one.limit_s:.0f}s" if one.limit_s else f" of {context.timeout_seconds}s"
    yield Fact("deadline", f"{at_work_s(one, now):.0f}s{limit} used · priority {one.priority}")
    yield Fact("path", " → ".join((*context.lineage, one.agent)) + (f" · run {one.run}" if one.run else ""))
    if context.retry_of:
        yield Fact("retry of", context.retry_of)
    if one.stage:
        yield Fact("stage", f"{one.stage} {one.note}".strip())
    for idea in state.ideas.values():
        if idea.handoff == one.id:
            became = "" if idea.state == "parked" else f" ({idea.state}{f': {idea.to}' if idea.to else ''})"
            yield Fact("parked", f"{idea.id} {_cut(idea.text)}{became}")
    yield Fact("", "What happened", "heading")
    for move in one.moves:
        why = f": {move.reason}" if move.reason else ""
        yield Fact(move.at[11:19], f"{move.target.glyph} {move.target.words}{why} ({move.actor})")
    if one.late:
        yield Fact("late", f"{one.late} results came too late and were dropped", "warning")
    if one.result is not None:
        yield from _of_result(one.result)


def _of_result(result: HandoffResult) -> Iterator[Fact]:
    yield Fact("", "What came of it", "heading")
    if result.error is not None:
        yield Fact("error", f"{result.error_code or ''} {result.error}".strip(), "error")
    if result.metadata.get("by"):
        yield Fact("by", clean_line(str(result.metadata["by"]), limit=80))
    if result.partial:
        yield Fact("partial", "it was cut off; what had come is kept", "warning")
    sure = result.confidence_source is not ConfidenceSource.NONE
    told = f"{result.confidence:.2f}, said by {result.confidence_source}" if sure else "-: none was reported"
    yield Fact("sure", told)
    for label, texts in (
        ("finds", result.key_findings),
        ("advises", result.recommendations),
        ("open", result.open_questions),
        ("warns", result.warnings),
    ):
        for text in texts:
            yield Fact(label, _cut(text))
    if result.missing:
        yield Fact("missing", ", ".join(result.missing), "warning")
    for name, score in result.scores.items():
        yield Fact("score", f"{name} {score:g}")
    for gate in result.quality:
        mark = "✓" if gate.passed else "·" if gate.passed is None else "✗"
        said = " ".join(dict.fromkeys(filter(None, (gate.wanted, gate.measured, gate.message))))
        style = "error" if gate.passed is False and gate.hard else "text"
        yield Fact("check", f"{mark} {gate.check} {said}", style)
    if result.output:
        yield Fact("", _cut(result.output))
    usage = result.usage
    yield Fact("", "What it took", "heading")
    yield Fact(
        "usage",
        f"{_count(usage.calls, 'model call')}, {usage.input_tokens:,} + {usage.output_tokens:,} tokens, "
        f"${usage.usd:.4f}, {result.duration_seconds:.1f}s",
    )


def _of_group(group: Group) -> Iterator[Fact]:
    yield Fact("", f"{group.id}: {group.mode} of {', '.join(group.agents)}", "strong")
    if group.min_success:
        yield Fact("least", f"{group.min_success} have to succeed")
    for one in group.candidates:
        why = " ".join(map(str, one.get("why", ())))
        agent = str(one.get("agent", ""))
        lost = f" · {group.lost[agent]}" if agent in group.lost else ""
        yield Fact("could", f"{agent} {one.get('score', 0)}: {why}{lost}")
    if group.message:
        yield Fact("ended", f"{group.code} {group.message}".strip(), "text" if group.ok else "error")
    if group.synthesis:
        yield Fact("together", group.synthesis)
    if group.output:
        yield Fact("", _cut(group.output))


def error_text(state: CrewState, name: str) -> str:
    """Why a handoff, or a group, failed: all that is recorded."""
    if (group := state.groups.get(name)) is not None:
        lost = "\n".join(f"{agent}: {why}" for agent, why in group.lost.items())
        return f"{group.code} {group.message}\n{lost}".strip()
    one = state.handoffs[name]
    result = one.result
    if result is None or result.error is None:
        return "it has no error"
    code = result.error_code
    lines = [f"{code or 'error'}: {clean(result.error, limit=20_000)}"]
    if code is not None:
        lines.append(f"category {code.category}; tried again by itself {code.retries} times at most")
    lines += [
        f"{'✗' if gate.hard else '·'} {gate.check} {gate.wanted} {gate.measured} {gate.message}".rstrip()
        for gate in result.quality
        if gate.passed is False
    ]
    lines += [f"warning: {text}" for text in result.warnings]
    lines += [f"missing: {', '.join(result.missing)}"] if result.missing else []
    lines += ["", "what had come by then:", result.output] if result.output else []
    lines += ["", "its moves:", *(f"{move.at} {move.target} {move.reason}".rstrip() for move in one.moves)]
    return "\n".join(lines)


def _cut(text: str) -> str:
    more = len(text) - OUTPUT_SHOWN
    return text if more <= 0 else f"{text[:OUTPUT_SHOWN]} [cut, {more:,} more]"
