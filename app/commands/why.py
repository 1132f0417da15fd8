"""Why, what an agent waits for, and plan drift, in words: for `pilothouse why`, the bar and the dialog."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from app.commands.command import Answer, CommandHost, Values
from app.projection.event_lines import TEXT_LIMIT, Words, call_text, line_of, step_text, table_words
from engine.core import events as ev
from engine.core.command import NOT_TOLD
from engine.core.journal import Event, JournalError
from engine.core.memory_events import MemoryStored
from engine.core.ports import Ports
from engine.core.store.opening import open_journal
from engine.core.text import clean_line
from engine.inquiry.drift import DeviationKind, PlanDeviation, Revision, plan_deviations, revisions
from engine.inquiry.indexed_record import record_of
from engine.inquiry.record import Record, Subject, UnknownSubjectError
from engine.inquiry.relations import Relation, body_of
from engine.inquiry.why import (
    Chain,
    Dependent,
    Evidence,
    Link,
    backward,
    cascade,
    doubted_events,
    evidence_of,
    forward,
    unsupported_beliefs,
)
from engine.value import asdict, dataclass


class Direction(StrEnum):
    """Which way a chain is walked."""

    BACKWARD = "backward"
    """What it depends on."""
    FORWARD = "forward"
    """What depends on it."""
    WRONG = "wrong"
    """What depends on its result, and which of it still holds."""


HEADS = {
    Direction.BACKWARD: "why {name}",
    Direction.FORWARD: "what depends on {name}",
    Direction.WRONG: "if {name} is wrong, this is in doubt (nothing was changed)",
}
TIES = {
    Relation.CAUSE: "",
    Relation.STEP: "its step: ",
    Relation.GOAL: "its goal: ",
    Relation.AFTER: "needed first: ",
    Relation.PLAN: "the plan before: ",
    Relation.FILE: "the file's writer: ",
    Relation.BELIEF: "the belief: ",
    Relation.TOLD: "known before: ",
}
"""What is said before an event that another one depends on."""
TIES_ON = {
    Relation.STEP: "its step runs: ",
    Relation.GOAL: "for this goal: ",
    Relation.AFTER: "waited for it: ",
    Relation.PLAN: "changed the plan: ",
    Relation.FILE: "names the file: ",
    Relation.BELIEF: "took the belief up: ",
    Relation.TOLD: "was told of it: ",
}
"""What is said before an event that depends on another one."""
MANY = {"memory": "memories"}
"""Words whose plural is not made by an s."""


@dataclass(frozen=True, slots=True)
class WhyLine:
    """One line of an answer; the text is cleaned."""

    ref: str
    lead: str
    """What stands before the text: the branches that it lies on."""
    glyph: str
    kind: str
    """As of `app.projection.event_lines.Line`; `missing` for an event that the journal lacks."""
    text: str
    time: str
    """Clock time, `HH:MM:SS`; empty for a missing event."""


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """An answer: what was asked about, and the lines."""

    subject: Subject
    way: Direction
    title: str
    lines: tuple[WhyLine, ...]
    chain: Chain
    standing: tuple[Dependent, ...] = ()
    alone: tuple[Dependent, ...] = ()
    """The beliefs among them that nothing else speaks for."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said beside the chain."""
        more = f"{self.chain.left_off} {'more' * self.chain.whole or 'and more'}"
        rest = f"{more} events (output, or beyond the limit) are not listed"
        names = ", ".join(clean_line(each.name, limit=80) for each in self.alone)
        alone = [f"nothing else speaks for: {names} (retract takes them back)"] if names else []
        return (*_standing_lines(self), *alone, *([rest] if self.chain.left_off else []))


def find_why(record: Record, what: str, way: Direction, agent: str = "") -> WhyAnswer:
    """The answer to a question.

    Args:
        record: the events.
        what: what is asked about; empty for the agent's newest action or event.
        way: which way.
        agent: whose ids and beliefs are meant.

    Raises:
        UnknownSubjectError: there is no such thing.
    """
    subject = record.subject(what or _newest(record, agent), agent)
    standing: tuple[Dependent, ...] = ()
    alone: tuple[Dependent, ...] = ()
    match way:
        case Direction.BACKWARD:
            chain = backward(record, subject.newest)
        case Direction.FORWARD:
            whole = subject.kind in ("action", "step", "goal", "plan", "job", "request")
            chain = forward(record, [subject.first if whole else subject.newest])
        case Direction.WRONG:
            doubted = cascade(record, [subject.newest])
            chain, standing = doubted.chain, doubted.standing
            alone = unsupported_beliefs(record, [subject.newest])
    title = HEADS[way].format(name=clean_line(subject.name, limit=80))
    marks = _marks(record, subject.newest if way is Direction.WRONG else "")
    lines = tuple(_line(link, way, marks.get(link.ref, "")) for link in chain.links)
    return WhyAnswer(subject, way, title, lines, chain, standing, alone)


def _newest(record: Record, agent: str) -> str:
    asked = record.newest(ev.ActionRequested.kind, agent)
    newest = asked or record.newest("", agent)
    if newest is None:
        raise UnknownSubjectError("nothing has happened yet; say what you ask about: why REF")
    return str(body_of(newest).get("action")) if asked is not None and agent else newest.ref


def _marks(record: Record, about: str) -> dict[str, str]:
    """What is to be said of events for the operator's marks, where all that is listed does not say it."""
    doubts = doubted_events(record)
    marks = {ref: f"in doubt: depends on {root}" for ref, root in doubts.items() if root != about}
    return marks | {
        ref: f"MARKED AS WRONG{': ' if why else ''}{clean_line(why, limit=200)}"
        for ref, why in record.disputes.items()
    }


def _line(link: Link, way: Direction, mark: str = "") -> WhyLine:
    if link.event is None:
        return WhyLine(link.ref, _lead(link), "?", "missing", f"{link.ref} is not in this journal", "")
    glyph, kind, text = event_words(link.event)
    ties = TIES if way is Direction.BACKWARD else TIES_ON
    tie = ties.get(link.relation, "") if link.relation is not None else ""
    again = " (shown elsewhere)" if link.again else ""
    marked = f" ≠ {mark}" if mark else ""
    return WhyLine(
        link.ref,
        _lead(link),
        glyph,
        "warning" if mark else kind,
        f"{tie}{text}{again}{marked}",
        link.event.at[11:19],
    )


def _lead(link: Link) -> str:
    """The trunk and the branches beside a line."""
    return "│ " * (link.level - 1) + ("├ " if link.branches else "│ ") if link.level else ""


def event_words(event: Event) -> tuple[str, str, str]:
    """Glyph, kind and words of any event; what is too small for `line_of` has words here."""
    try:
        if (line := line_of(event)) is not None:
            by = f"{line.by}: " if line.by else ""
            return line.glyph, line.kind, f"{by}{line.text}"
        words = table_words(_SMALL, ev.payload_of(event))
    except JournalError:
        return "?", "warning", f"{clean_line(event.kind)} (of no kind that is known here)"
    if words is None:
        subject = next((v for v in body_of(event).values() if isinstance(v, str) and v), "")
        words = "·", "session", f"{event.kind.replace('.', ' ').replace('_', ' ')} {subject}".strip()
    glyph, kind, text = words
    by = f"{event.actor.removeprefix('operator:')}: " if event.kind == ev.CommandReceived.kind else ""
    return glyph, kind, clean_line(f"{by}{text}", limit=TEXT_LIMIT)


def _received(p: ev.CommandReceived) -> str:
    args = {name: text for name, text in p.command.items() if name not in NOT_TOLD}
    texts: dict[str, object] = {name: text for name, text in args.items() if text and isinstance(text, str)}
    return f"» operator {call_text(str(p.command.get('do', '')), texts)}"


_SMALL: Words = {
    ev.CommandReceived: _received,
    ev.WorkspaceCreated: "○ session the workspace was made",
    ev.AgentOpened: "○ session opened by a session",
    ev.WorldPerceived: lambda p: (
        f"∴ thought looked at its workspace: {', '.join(sorted(p.facts)) or 'nothing new'}"
    ),
    ev.PlanAsked: "→ thought {p.thinker} is asked for a plan for {p.goal}",
    ev.DecisionAsked: "→ thought {p.thinker} is asked what to do next for {p.goal} ({p.step})",
    ev.OperatorActionQueued: lambda p: f"» operator {call_text(p.command, p.args)}",
    ev.ParametersProcessed: "· action {p.action}: its parameters were looked at",
    MemoryStored: "… thought remembered {p.memory.id}: {p.memory.content}",
    ev.SnapshotTaken: "· action {p.action} saved first: {p.files} files",
}


def _standing_lines(why: WhyAnswer) -> tuple[str, ...]:
    if why.way is not Direction.WRONG:
        return ()
    words = {
        "belief": "still believed: {name}",
        "file": "still as written then: {name}",
        "step": "counts as done: {name}",
        "waiting step": "depends on it: {name}",
        "goal": "counts as achieved: {name}",
        "memory": "remembered: {name}",
    }
    lines = [f"{words[each.kind].format(name=clean_line(each.name))} ({each.ref})" for each in why.standing]
    if not lines:
        return ("nothing that still holds depends on it",)
    counts = Counter(each.kind for each in why.standing)
    parts = [f"{n} {kind if n == 1 else MANY.get(kind, f'{kind}s')}" for kind, n in counts.items()]
    return (f"in doubt: {', '.join(parts)}", *lines)


def why_answer(record: Record, what: str, way: Direction, agent: str = "") -> Answer:
    """The answer as exit code, JSON and text; 2 where nothing is called so."""
    try:
        why = find_why(record, what, way, agent)
    except UnknownSubjectError as error:
        return 2, {}, str(error)
    answer = {
        "subject": {"kind": why.subject.kind, "name": why.subject.name, "refs": list(why.subject.refs)},
        "way": way.value,
        "lines": [
            {
                "ref": link.ref,
                "depth": link.depth,
                "relation": link.relation.value if link.relation is not None else None,
                **{name: getattr(link.event, name, None) for name in ("kind", "actor", "at")},
                "text": line.text,
                "again": link.again,
            }
            for link, line in zip(why.chain.links, why.lines, strict=True)
        ],
        "standing": standing_json(why),
        "left_off": why.chain.left_off,
        "whole": why.chain.whole,
    }
    return 0, answer, "\n".join([why.title, *(plain_line(line) for line in why.lines), *why.notes])


def standing_json(why: WhyAnswer) -> list[dict[str, str]]:
    """What still holds of what depends on a result, as JSON."""
    return [
        {"kind": each.kind, "name": each.name, "agent": each.agent, "ref": each.ref} for each in why.standing
    ]


async def answer_why(host: CommandHost, values: Values) -> Answer:
    """Answer `why` without a screen."""
    record, way = await host.engine.record(), Direction(values["direction"])
    return await asyncio.to_thread(why_answer, record, values["subject"], way, host.context.agent)


def plain_line(line: WhyLine) -> str:
    """A line for a terminal without colours."""
    return f"{line.ref:<16} {line.time:<8} {line.lead}{line.glyph} {line.text}"


async def query_why(workspace: Path, what: str, way: Direction, agent: str) -> Answer:
    """Answer `pilothouse why`; reading only, also while an engine runs.

    Raises:
        JournalError: there is no journal, or it cannot be read.
    """
    store = await open_journal(workspace, clock=Ports().clock, read_only=True)
    try:
        record = await record_of(workspace, store)
    finally:
        await store.close()
    return await asyncio.to_thread(why_answer, record, what, way, agent)


# ------------------------------------------------------------------ plan drift


@dataclass(frozen=True, slots=True)
class Drift:
    """How an agent has kept to its plans: courses of its actions, plans as differences, what is shown."""

    courses: list[PlanDeviation]
    revisions: list[Revision]
    shown: list[Evidence]

    @property
    def lines(self) -> tuple[WhyLine, ...]:
        """It as lines that name their events."""
        revised, shown = _revision_lines(self.revisions), _evidence_lines(self.shown)
        return (*_course_lines(self.courses), *revised, *shown)


def drift_of(events: Sequence[Event], goal: str = "") -> Drift:
    """How an agent has kept to its plans.

    Args:
        events: the agent's events in their order.
        goal: only what is for this goal; all where it is empty.
    """
    revised = list(revisions(events, goal))
    goals = dict.fromkeys([each.goal for each in revised] + ([goal] if goal else []))
    shown = [evidence for each in goals if (evidence := evidence_of(events, each)) is not None]
    courses = [deviation for deviation in plan_deviations(events) if goal in ("", deviation.goal)]
    return Drift(courses, revised, shown)


async def show_drift(host: CommandHost, values: Values) -> Answer:
    """How the agent has kept to its plans."""
    goal = values["goal"] or ""
    drift = drift_of(await host.engine.store.read(host.context.agent), goal)
    if goal and not drift.shown:
        return 2, {}, f"there is no goal '{goal}'"
    text = "\n".join(f"{line.lead}{line.text}{f'  ({line.ref})' if line.ref else ''}" for line in drift.lines)
    return 0, asdict(drift), text or "no plan and no action yet"


_COURSES = {
    DeviationKind.ON_PLAN: ("✓", "success"),
    DeviationKind.OFF_PLAN: ("≠", "warning"),
    DeviationKind.NO_LIVE_GOAL: ("✗", "error"),
}


def _drift_line(ref: str, depth: int, glyph: str, kind: str, text: str) -> WhyLine:
    return WhyLine(ref, "  " * depth, glyph, kind, clean_line(text, limit=TEXT_LIMIT), "")


def _course_lines(courses: Sequence[PlanDeviation]) -> Iterator[WhyLine]:
    for course in courses:
        yield _drift_line(
            course.ref,
            0,
            *_COURSES[course.kind],
            f"{course.action} {course.kind}, {course.call}: {course.why}",
        )


def _revision_lines(revised: Sequence[Revision]) -> Iterator[WhyLine]:
    """Revisions as differences: `+` added, `-` removed, `~` changed, `↕` moved."""
    for revision in revised:
        changed = revision.difference
        what = f"revision {revision.number} ({revision.by}): {revision.change or 'accepted'}"
        yield _drift_line(revision.ref, 0, "≡", "plan", f"{revision.plan} for {revision.goal}, {what}")
        for sign, kind, steps in (("+", "success", changed.added), ("-", "error", changed.removed)):
            for step in steps:
                yield _drift_line("", 1, sign, kind, f"{sign} {step.id} {step_text(step)}")
        for two in changed.changed:
            yield _drift_line(
                "", 1, "~", "warning", f"~ {two.new.id} {step_text(two.old)} → {step_text(two.new)}"
            )
        for each in changed.moved:
            yield _drift_line("", 1, "↕", "warning", f"↕ {each.step.id} from place {each.was} to {each.now}")


def _evidence_lines(shown: Sequence[Evidence]) -> Iterator[WhyLine]:
    """What there is to show for each goal."""
    for goal in shown:
        yield _drift_line(goal.ref, 0, "●", "goal", f"{goal.goal} {goal.status}: {goal.text}")
        for each in goal.criteria:
            proof = f"{each.step} {each.summary}" if each.holds else "NOTHING SHOWS IT"
            mark, kind = ("✓", "success") if each.holds else ("✗", "error")
            yield _drift_line(each.ref, 1, mark, kind, f"{each.criterion}: {proof}")
        for result in goal.results:
            yield _drift_line(result.ref, 1, "·", "action", f"{result.step} {result.summary}")
