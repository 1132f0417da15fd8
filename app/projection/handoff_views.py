"""The timeline of handoffs: trees by lineage, and all that is known of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from app.projection.fleet_views import seconds_since, seconds_used, state_style
from engine.core.agents import RECORDING
from engine.core.text import clean, clean_line, short_duration
from engine.crew.ontology.context import SLOTS, HumanRequest
from engine.crew.ontology.kinds import ConfidenceSource, HandoffMode, HandoffState, Priority
from engine.crew.ontology.results import HandoffResult, Usage
from engine.crew.state import CrewState, Group, Handoff
from widgets.base.facts import Fact
from widgets.dialogs.handoffs import HandoffLine, HandoffRequest, HandoffsModel

TREES = 120
"""Trees that are shown: the newest, and all with something open."""
OUTPUT_SHOWN = 6_000
"""Characters of an output or a task; what is more is said."""
SHORT_ID = 8
_MODES = {"parallel": "P", "sequential": "S", "selective": "L", "debate": "B"}
_FAILED = (HandoffState.FAILED, HandoffState.TIMED_OUT, HandoffState.CANCELLED, HandoffState.REJECTED)


def timeline(state: CrewState, now: datetime, *, shown: str = "", message: str = "") -> HandoffsModel:
    """What the timeline shows.

    Args:
        state: what the crew knows.
        now: what time it is, aware.
        shown: the handoff, or group, that the facts are to be about; empty for the newest.
        message: the result of the last key.
    """
    trees = _Trees(state, now)
    newest = trees.roots[::-1]
    chosen = [root for at, root in enumerate(newest) if at < TREES or trees.alive(root)]
    lines = tuple(line for root in chosen for line in trees.tree(root))
    known = {line.key for line in lines}
    shown = shown if shown in known else next(iter(known and (lines[0].key,)), "")
    handoffs = [handoff for handoff in state.handoffs.values() if not handoff.proof]
    counts = Counter(handoff.state for handoff in handoffs if handoff.open)
    parts = [_count(len(handoffs), "handoff")]
    parts += [f"{count} {handoff.words}" for handoff, count in counts.items()]
    if hidden := len(newest) - len(chosen):
        parts.append(f"{hidden} older trees are not shown")
    used = [handoff.result.usage for handoff in handoffs if handoff.result is not None]
    if calls := sum(usage.calls for usage in used):
        parts.append(f"{_count(calls, 'model call')}, ${sum(usage.usd for usage in used):.2f}")
    if any(RECORDING in handoff.context.metadata for handoff in handoffs):
        parts.append("RECORDED")
    return HandoffsModel(lines, " · ".join(parts), shown, handoff_facts(state, shown, now), message)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# ------------------------------------------------------------------ trees


class _Trees:
    """Who stands below whom: all but what proves new agents, which is shown with their builds."""

    def __init__(self, state: CrewState, now: datetime) -> None:
        self._state, self._now = state, now
        self.roots: list[str] = []
        self._children: dict[str, list[str]] = {}
        for name, handoff in state.handoffs.items():
            parent = handoff.context.parent_id
            if not handoff.proof:
                known = parent in state.handoffs
                (self._children.setdefault(str(parent), []) if known else self.roots).append(name)

    def alive(self, name: str) -> bool:
        """Whether something of a tree is open."""
        return self._state.handoffs[name].open or any(map(self.alive, self._children.get(name, ())))

    def tree(self, root: str) -> Iterator[HandoffLine]:
        """A handoff with all below it; those of one group of the operator are one tree, behind a bracket."""
        handoffs = self._state.handoffs
        group = handoffs[root].group
        whole = [root]
        if group in self._state.groups:
            whole = [each for each in self.roots if handoffs[each].group == group]
        if whole[-1] != root:
            return  # the group is shown where its newest member stands
        yield from self._level(whole, "")

    def _level(self, names: Sequence[str], lead: str) -> Iterator[HandoffLine]:
        """Handoffs beside each other, those of a group behind its bracket."""
        handoffs, counted = self._state.handoffs, set()
        for at, name in enumerate(names):
            group = self._state.groups.get(handoffs[name].group)
            branch = (" └ " if at == len(names) - 1 else " ├ ") if lead or at or len(names) > 1 else ""
            if group is None:
                yield self._line(handoffs[name], lead + branch)
                yield from self._below(name, lead + ("   " if branch else ""))
            elif group.id not in counted:
                counted.add(group.id)
                together = [each for each in names if handoffs[each].group == group.id]
                yield _heading(group, handoffs, lead, self._now)
                for place, each in enumerate(together):
                    yield self._line(handoffs[each], lead + _bracket(group, place, len(together)))
                    yield from self._below(each, lead + "   ")

    def _below(self, name: str, lead: str) -> Iterator[HandoffLine]:
        if children := self._children.get(name):
            yield from self._level(children, lead or " ")

    def _line(self, handoff: Handoff, lead: str) -> HandoffLine:
        now, context = self._now, handoff.context
        urgent = "!" * (handoff.priority - Priority.NORMAL) if handoff.open else ""
        again = f" (try {context.attempt})" if context.attempt > 1 else ""
        took = handoff.result.duration_seconds if handoff.result is not None else seconds_used(handoff, now)
        waits = handoff.state in (HandoffState.QUEUED, HandoffState.WAITING_HUMAN, HandoffState.PAUSED)
        return HandoffLine(
            handoff.id,
            f"{context.handoff_type.value[0].upper()}{urgent} {handoff.id[:SHORT_ID]} {handoff.agent}{again}",
            lead,
            handoff.state.glyph,
            state_style(handoff.state),
            handoff.state.words,
            short_duration(seconds_since(handoff.moves[-1].at, now) if waits else took),
            tail=_tail(handoff),
            may=allowed_actions(handoff),
        )


def _bracket(group: Group, place: int, count: int) -> str:
    if group.mode == "sequential":
        return " ┬ " if place == 0 else " ↓ "
    if count == 1:
        return " ╶ "
    return " ┌ " if place == 0 else " └ " if place == count - 1 else " ├ "


def _heading(group: Group, handoffs: Mapping[str, Handoff], lead: str, now: datetime) -> HandoffLine:
    name = f"{_MODES.get(group.mode, 'G')} {group.id[:SHORT_ID]} {group.mode}: {', '.join(group.agents)}"
    if not group.ended:
        took = short_duration(seconds_since(group.at, now))
        return HandoffLine(group.id, name, lead, "▶", "accent", "running", took, heading=True)
    members = [handoffs[name] for name in group.handoffs if name in handoffs]
    good = sum(member.state is HandoffState.COMPLETED for member in members)
    mark, style, word = ("✓", "success", "done") if group.ok else ("✗", "error", "failed")
    if good < len(members) and group.mode != HandoffMode.SELECTIVE:
        mark, style, word = ("◐", "warning", "partly done") if group.ok and good else ("✗", "error", "failed")
    why = clean_line(f"{group.code} {group.message}", limit=300).strip()
    may: frozenset[HandoffRequest] = frozenset() if group.ok else frozenset({"error"})
    return HandoffLine(group.id, name, lead, mark, style, word, heading=True, tail=why, may=may)


def _tail(handoff: Handoff) -> str:
    result = handoff.result
    if result is None:
        return clean_line(handoff.note, limit=120)
    if result.error is not None:
        return clean_line(f"{result.error_code or ''}: {result.end}", limit=300).removeprefix(": ")
    sure = result.confidence_source is not ConfidenceSource.NONE
    return f"{result.confidence:.2f}" if sure else ""


def allowed_actions(handoff: Handoff) -> frozenset[HandoffRequest]:
    """What can be asked of a handoff now."""
    may: set[HandoffRequest] = {"prompt"}
    if handoff.open:
        may |= {"cancel", "raise", "lower", "take_over"}
    if handoff.state in (HandoffState.RUNNING, HandoffState.PAUSED) and not handoff.remote:
        may.add("pause")
    if handoff.state in _FAILED:
        may.add("retry")
    if handoff.result is not None and handoff.result.error is not None:
        may.add("error")
    if handoff.run:
        may.add("open")
    return frozenset(may)


# ------------------------------------------------------------------ what is known of one


def handoff_facts(state: CrewState, name: str, now: datetime) -> tuple[Fact, ...]:
    """All that is known of a handoff, or of a group."""
    if (group := state.groups.get(name)) is not None:
        return tuple(_of_group(state, group))
    handoff = state.handoffs.get(name)
    return tuple(_of_handoff(state, handoff, now)) if handoff is not None else ()


def _asked(request: HumanRequest) -> str:
    """A request in words, without its title where that is only the beginning of the question."""
    who, _, words = request.title.partition(": ")
    again = bool(words) and request.question.startswith(words.rstrip("…"))
    return f"{who if again else request.title}: {request.question}"


def _of_handoff(state: CrewState, handoff: Handoff, now: datetime) -> Iterator[Fact]:
    context = handoff.context
    spec = handoff.spec
    by = handoff.agent if spec is None else f"{handoff.agent} {spec.version} ({spec.type})"
    yield Fact("", f"{handoff.id}: {context.from_agent} → {by}", "strong")
    yield Fact("state", f"{handoff.state.glyph} {handoff.state.words}", state_style(handoff.state))
    for request in state.open_requests(handoff.id):
        yield Fact("asks", f"{request.id} {_asked(request)}", "warning")
    if RECORDING in context.metadata:
        yield Fact("RECORDED", "answers written for a demonstration; no model is asked", "warning")
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
        name, findings = analysis.framework_name or analysis.framework_id, "; ".join(analysis.key_findings)
        yield Fact("before", f"{name}: {clean_line(findings or analysis.output, limit=300)}")
    limit = f"{handoff.limit_s:.0f}" if handoff.limit_s else context.timeout_seconds
    used = seconds_used(handoff, now)
    yield Fact("deadline", f"{used:.0f}s of {limit}s used · priority {handoff.priority}")
    run = f" · run {handoff.run}" if handoff.run else ""
    yield Fact("path", " → ".join((*context.lineage, handoff.agent)) + run)
    if handoff.remote or handoff.origin:
        yield Fact(
            "shard", "another one has it" if handoff.remote else f"it comes from shard {handoff.origin}"
        )
    yield from _course(state, handoff)


def _course(state: CrewState, handoff: Handoff) -> Iterator[Fact]:
    """What has happened of a handoff, and its result."""
    if handoff.context.retry_of:
        yield Fact("retry of", handoff.context.retry_of)
    if handoff.stage:
        yield Fact("stage", f"{handoff.stage} {handoff.note}".strip())
    for idea in state.ideas.values():
        if idea.handoff == handoff.id:
            became = "" if idea.state == "parked" else f" ({idea.state}{f': {idea.to}' if idea.to else ''})"
            yield Fact("parked", f"{idea.id} {_cut(idea.text)}{became}")
    yield Fact("", "What happened", "heading")
    for move in handoff.moves:
        why = f": {move.reason}" if move.reason else ""
        yield Fact(
            move.at[11:19],
            f"{move.target.glyph} {move.target.words}{why} ({move.actor.removeprefix('operator:')})",
        )
    if handoff.late:
        yield Fact("late", f"{handoff.late} results came too late and were dropped", "warning")
    if handoff.result is not None:
        yield from _of_result(handoff.result, state.spent(handoff.id))


def _usage_text(usage: Usage) -> str:
    tokens = f"{usage.input_tokens:,} + {usage.output_tokens:,} tokens"
    return f"{_count(usage.calls, 'model call')}, {tokens}, ${usage.usd:.4f}"


def _of_result(result: HandoffResult, usage: Usage) -> Iterator[Fact]:
    yield Fact("", "Its result", "heading")
    if result.error is not None:
        yield Fact("error", f"{result.error_code or ''} {result.end}".strip(), "error")
    if result.metadata.get("by"):
        yield Fact("by", clean_line(str(result.metadata["by"]), limit=80))
    if result.partial and not result.success:
        yield Fact("kept", "what had come of it stands below", "warning")
    sure = result.confidence_source is not ConfidenceSource.NONE
    lines = f"{result.confidence:.2f}, said by {result.confidence_source}" if sure else "-: none was reported"
    yield Fact("sure", lines)
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
        yield Fact("check", gate.line, "error" if gate.passed is False and gate.hard else "text")
    if result.output:
        yield Fact("", _cut(result.output))
    yield Fact("", "What it took", "heading")
    yield Fact("usage", f"{_usage_text(usage)}, {result.duration_seconds:.1f}s")
    if below := usage.calls - result.usage.calls:
        spent = usage.usd - result.usage.usd
        yield Fact("below", f"{_count(below, 'model call')} of it by what it handed over, ${spent:.4f}")


def _of_group(state: CrewState, group: Group) -> Iterator[Fact]:
    yield Fact("", f"{group.id}: {group.mode} of {', '.join(group.agents)}", "strong")
    if group.min_success:
        yield Fact("least", f"{group.min_success} have to succeed")
    for candidate in group.candidates:
        why = " ".join(map(str, candidate.get("why", ())))
        agent = str(candidate.get("agent", ""))
        lost = f" · {group.lost[agent]}" if agent in group.lost else ""
        yield Fact("could", f"{agent} {candidate.get('score', 0)}: {why}{lost}")
    if group.message:
        yield Fact("ended", f"{group.code} {group.message}".strip(), "text" if group.ok else "error")
    if (usage := state.spent(group.id)).calls:
        yield Fact("usage", _usage_text(usage))
    if group.synthesis:
        yield Fact("together", group.synthesis)
    if group.output:
        yield Fact("", _cut(group.output))


def error_text(state: CrewState, name: str) -> str:
    """Why a handoff, or a group, failed: all that is recorded."""
    if (group := state.groups.get(name)) is not None:
        lost = "\n".join(f"{agent}: {why}" for agent, why in group.lost.items())
        return f"{group.code} {group.message}\n{lost}".strip()
    handoff = state.handoffs[name]
    result = handoff.result
    if result is None or result.error is None:
        return "it has no error"
    code = result.error_code
    lines = [f"{code or 'error'}: {clean(str(result.end), limit=20_000)}"]
    if code is not None:
        lines.append(f"category {code.category}; tried again by itself {code.retries} times at most")
    lines += [gate.line for gate in result.quality if gate.passed is False]
    lines += [f"warning: {text}" for text in result.warnings]
    lines += [f"missing: {', '.join(result.missing)}"] if result.missing else []
    lines += ["", "what had come by then:", result.output] if result.output else []
    lines += ["", "its moves:"]
    lines += [f"{move.at} {move.target} {move.reason}".rstrip() for move in handoff.moves]
    return "\n".join(lines)


def _cut(text: str) -> str:
    more = len(text) - OUTPUT_SHOWN
    return text if more <= 0 else f"{text[:OUTPUT_SHOWN]} [cut, {more:,} more]"
