"""Why, what an agent waits for, and plan drift, in words: for `pilothouse why`, the bar and the dialog."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.lines import TEXT_LIMIT, call_text, line_of
from engine import inquiry
from engine.domain.plan import PlanStep
from engine.domain.ports import Ports
from engine.domain.text import clean_line
from engine.inquiry import Chain, Link, Record, Relation, Subject
from engine.inquiry.naming import body_of
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.journal.event import Event
from engine.journal.store import JournalStore

Answer = tuple[int, dict[str, Any], str]
"""Exit code, JSON answer, text."""


class Way(StrEnum):
    """Which way a chain is walked."""

    BACKWARD = "backward"
    """What it stands on."""
    FORWARD = "forward"
    """What stands on it."""
    WRONG = "wrong"
    """What stands on its result, and which of it still holds."""


HEADS = {
    Way.BACKWARD: "why {name}",
    Way.FORWARD: "what stands on {name}",
    Way.WRONG: "if {name} is wrong, this is in doubt (nothing was changed)",
}
TIES = {
    Relation.CAUSE: "",
    Relation.STEP: "its step: ",
    Relation.GOAL: "its goal: ",
    Relation.AFTER: "needed first: ",
    Relation.PLAN: "the plan before: ",
    Relation.FILE: "the file's writer: ",
    Relation.BELIEF: "the belief: ",
    Relation.TOLD: "told beforehand: ",
}
"""What is said before an event that another one stands on."""
TIES_ON = {
    Relation.STEP: "its step runs: ",
    Relation.GOAL: "for this goal: ",
    Relation.AFTER: "waited for it: ",
    Relation.PLAN: "changed the plan: ",
    Relation.FILE: "names the file: ",
    Relation.BELIEF: "took the belief up: ",
    Relation.TOLD: "was told of it: ",
}
"""What is said before an event that stands on another one."""
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
    """As of `app.lines.Line`; `missing` for an event that the journal lacks."""
    text: str
    time: str
    """Clock time, `HH:MM:SS`; empty for a missing event."""


@dataclass(frozen=True, slots=True)
class Found:
    """An answer: what was asked about, and the lines."""

    subject: Subject
    way: Way
    title: str
    lines: tuple[WhyLine, ...]
    chain: Chain
    standing: tuple[inquiry.Standing, ...] = ()
    alone: tuple[inquiry.Standing, ...] = ()
    """The beliefs among them that nothing else speaks for."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said beside the chain."""
        more = f"{self.chain.left_off} {'more' * self.chain.whole or 'and more'}"
        rest = f"{more} events (output, or beyond the limit) are not listed"
        names = ", ".join(clean_line(one.name, limit=80) for one in self.alone)
        alone = [f"nothing else speaks for: {names} (retract takes them back)"] if names else []
        return (*_standing_lines(self), *alone, *([rest] if self.chain.left_off else []))


def find(record: Record, what: str, way: Way, agent: str = "") -> Found:
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
    standing: tuple[inquiry.Standing, ...] = ()
    alone: tuple[inquiry.Standing, ...] = ()
    match way:
        case Way.BACKWARD:
            chain = inquiry.backward(record, subject.newest)
        case Way.FORWARD:
            whole = subject.kind in ("action", "step", "goal", "plan", "job", "request")
            chain = inquiry.forward(record, [subject.first if whole else subject.newest])
        case Way.WRONG:
            doubted = inquiry.cascade(record, [subject.newest])
            chain, standing = doubted.chain, doubted.standing
            alone = inquiry.standing_alone(record, [subject.newest])
    title = HEADS[way].format(name=clean_line(subject.name, limit=80))
    marks = _marks(record, subject.newest if way is Way.WRONG else "")
    lines = tuple(_line(link, way, marks.get(link.ref, "")) for link in chain.links)
    return Found(subject, way, title, lines, chain, standing, alone)


def _newest(record: Record, agent: str) -> str:
    asked = record.newest(ev.ActionRequested.kind, agent)
    newest = asked or record.newest("", agent)
    if newest is None:
        raise inquiry.UnknownSubjectError("nothing has happened yet; say what you ask about: why REF")
    return str(body_of(newest).get("action")) if asked is not None and agent else newest.ref


def _marks(record: Record, about: str) -> dict[str, str]:
    """What is to be said of events for the operator's marks, where all that is listed does not say it."""
    doubts = inquiry.doubted(record)
    marks = {ref: f"in doubt: stands on {root}" for ref, root in doubts.items() if root != about}
    return marks | {
        ref: f"MARKED AS WRONG{': ' if why else ''}{clean_line(why, limit=200)}"
        for ref, why in record.disputes.items()
    }


def _line(link: Link, way: Way, mark: str = "") -> WhyLine:
    if link.event is None:
        return WhyLine(link.ref, _lead(link), "?", "missing", f"{link.ref} is not in this journal", "")
    glyph, kind, text = words_of(link.event)
    ties = TIES if way is Way.BACKWARD else TIES_ON
    tie = ties.get(link.relation, "") if link.relation is not None else ""
    again = " (told in another place)" if link.again else ""
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


def words_of(event: Event) -> tuple[str, str, str]:
    """Glyph, kind and words of any event; what is too small for `line_of` has words here."""
    try:
        line = line_of(event)
        said = ev.payload_of(event) if line is None else None
    except JournalError:
        return "?", "warning", f"{clean_line(event.kind)} (of no kind that is known here)"
    if line is not None:
        return line.glyph, line.kind, line.text
    assert said is not None
    glyph, kind, text = _small_words(event, said)
    return glyph, kind, clean_line(text, limit=TEXT_LIMIT)


def _small_words(event: Event, said: ev.Payload) -> tuple[str, str, str]:
    match said:
        case ev.CommandReceived():
            rest: dict[str, object] = {
                name: value
                for name, value in said.command.items()
                if name not in ("do", "agent") and value and isinstance(value, str)
            }
            told = call_text(str(said.command.get("do", "")), rest)
            return "»", "operator", f"{event.actor.removeprefix('operator:')}: {told}"
        case ev.WorkspaceCreated():
            return "○", "session", "the workspace was made"
        case ev.AgentOpened():
            return "○", "session", "taken up by a session"
        case ev.WorldPerceived():
            known = ", ".join(sorted(said.facts)) or "nothing new"
            return "∴", "thought", f"looked at its workspace: {known}"
        case ev.PlanAsked():
            return "→", "thought", f"{said.thinker} is asked for a plan for {said.goal}"
        case ev.DecisionAsked():
            return "→", "thought", f"{said.thinker} is asked what to do next for {said.goal} ({said.step})"
        case ev.OperatorActionQueued():
            return "»", "operator", call_text(said.command, said.args)
        case ev.ParametersProcessed():
            return "·", "action", f"{said.action}: its parameters were looked at"
        case ev.memory_events.MemoryStored():
            return "…", "thought", f"remembered {said.memory.id}: {said.memory.content}"
        case ev.SnapshotTaken():
            return "·", "action", f"{said.action} saved first: {said.files} files"
        case _:
            subject = next((v for v in body_of(event).values() if isinstance(v, str) and v), "")
            return "·", "session", f"{event.kind.replace('.', ' ').replace('_', ' ')} {subject}".strip()


def _standing_lines(found: Found) -> tuple[str, ...]:
    if found.way is not Way.WRONG:
        return ()
    words = {
        "belief": "still believed: {name}",
        "file": "still as written then: {name}",
        "step": "counts as done: {name}",
        "waiting step": "depends on it: {name}",
        "goal": "counts as achieved: {name}",
        "memory": "remembered: {name}",
    }
    told = [f"{words[one.kind].format(name=clean_line(one.name))} ({one.ref})" for one in found.standing]
    if not told:
        return ("nothing that still holds stands on it",)
    counts = Counter(one.kind for one in found.standing)
    said = [f"{n} {kind if n == 1 else MANY.get(kind, f'{kind}s')}" for kind, n in counts.items()]
    return (f"in doubt: {', '.join(said)}", *told)


def why_answer(record: Record, what: str, way: Way, agent: str = "") -> Answer:
    """The answer as exit code, JSON and text; 2 where nothing is called so."""
    try:
        found = find(record, what, way, agent)
    except inquiry.UnknownSubjectError as error:
        return 2, {}, str(error)
    answer = {
        "subject": {"kind": found.subject.kind, "name": found.subject.name, "refs": list(found.subject.refs)},
        "way": way.value,
        "lines": [
            {
                "ref": link.ref,
                "depth": link.depth,
                "relation": link.relation.value if link.relation is not None else None,
                "kind": link.event.kind if link.event is not None else None,
                "actor": link.event.actor if link.event is not None else None,
                "at": link.event.at if link.event is not None else None,
                "text": line.text,
                "again": link.again,
            }
            for link, line in zip(found.chain.links, found.lines, strict=True)
        ],
        "standing": [
            {"kind": one.kind, "name": one.name, "agent": one.agent, "ref": one.ref} for one in found.standing
        ],
        "left_off": found.chain.left_off,
        "whole": found.chain.whole,
    }
    return 0, answer, "\n".join([found.title, *(plain(line) for line in found.lines), *found.notes])


def plain(line: WhyLine) -> str:
    """A line for a terminal without colours."""
    return f"{line.ref:<16} {line.time:<8} {line.lead}{line.glyph} {line.text}"


async def look(workspace: Path, what: str, way: Way, agent: str) -> Answer:
    """Answer `pilothouse why`; reading only, also while an engine runs.

    Raises:
        JournalError: there is no journal, or it cannot be read.
    """
    store = await JournalStore.open(workspace, clock=Ports().clock, read_only=True)
    try:
        record = await inquiry.record_of(workspace, store)
    finally:
        await store.close()
    return await asyncio.to_thread(why_answer, record, what, way, agent)


def waiting_text(found: inquiry.Waiting, now: str) -> str:
    """What an agent waits for, and how long it has."""
    since = f", since {found.since[11:19]} ({lasted(found.since, now)})" if found.since else ""
    return f"waits for {clean_line(found.what)}{since}"


def lasted(since: str, now: str) -> str:
    """The time between two moments, in the largest unit that fits."""
    seconds = max(0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


# ------------------------------------------------------------------ plan drift


def drift_answer(events: Sequence[Event], goal: str = "") -> Answer:
    """How an agent has kept to its plans: courses of its actions, plans as differences, and what is shown.

    Args:
        events: the agent's events in their order.
        goal: only what is for this goal; all where it is empty.
    """
    courses = [one for one in inquiry.course_of(events) if goal in ("", one.goal)]
    revised = inquiry.revisions(events, goal)
    goals = dict.fromkeys([one.goal for one in revised] + ([goal] if goal else []))
    shown = [found for each in goals if (found := inquiry.evidence_of(events, each)) is not None]
    if goal and not shown:
        return 2, {}, f"there is no goal '{goal}'"
    answer = {
        "actions": [
            {"action": one.action, "course": one.kind.value, "why": one.why, "call": one.call, "ref": one.ref}
            for one in courses
        ],
        "revisions": [_as_json(one) for one in revised],
        "evidence": [
            {
                "goal": one.goal,
                "status": one.status.value,
                "complete": one.complete,
                "criteria": [
                    {"criterion": each.criterion, "step": each.step, "ref": each.ref} for each in one.criteria
                ],
                "results": [
                    {"step": each.step, "summary": each.summary, "ref": each.ref} for each in one.results
                ],
            }
            for one in shown
        ],
    }
    lines = [*_course_lines(courses), *_revision_lines(revised), *_evidence_lines(shown)]
    text = "\n".join(f"{line.lead}{line.text}{f'  ({line.ref})' if line.ref else ''}" for line in lines)
    return 0, answer, text or "no plan and no action yet"


def drift_lines(events: Sequence[Event], goal: str = "") -> tuple[WhyLine, ...]:
    """The same as lines that name their events; see `drift_answer`."""
    courses = [one for one in inquiry.course_of(events) if goal in ("", one.goal)]
    revised = inquiry.revisions(events, goal)
    goals = dict.fromkeys([one.goal for one in revised])
    shown = [found for each in goals if (found := inquiry.evidence_of(events, each)) is not None]
    return (*_course_lines(courses), *_revision_lines(revised), *_evidence_lines(shown))


def _as_json(one: inquiry.Revision) -> dict[str, Any]:
    changed = one.difference
    return {
        "plan": one.plan,
        "goal": one.goal,
        "number": one.number,
        "by": one.by,
        "change": one.change,
        "ref": one.ref,
        "added": [step.id for step in changed.added],
        "removed": [step.id for step in changed.removed],
        "changed": [
            {"old": two.old.id, "new": two.new.id, "fields": list(two.fields)} for two in changed.changed
        ],
        "moved": [{"step": two.step.id, "was": two.was, "now": two.now} for two in changed.moved],
        "kept": changed.kept,
    }


_COURSES = {
    inquiry.CourseKind.ON_PLAN: ("✓", "success"),
    inquiry.CourseKind.OFF_PLAN: ("≠", "warning"),
    inquiry.CourseKind.NO_LIVE_GOAL: ("✗", "error"),
}


def _told(ref: str, depth: int, glyph: str, kind: str, text: str) -> WhyLine:
    return WhyLine(ref, "  " * depth, glyph, kind, clean_line(text, limit=TEXT_LIMIT), "")


def _course_lines(courses: Sequence[inquiry.Course]) -> Iterator[WhyLine]:
    for one in courses:
        yield _told(one.ref, 0, *_COURSES[one.kind], f"{one.action} {one.kind}, {one.call}: {one.why}")


def _revision_lines(revised: Sequence[inquiry.Revision]) -> Iterator[WhyLine]:
    """Revisions as differences: `+` added, `-` removed, `~` changed, `↕` moved."""
    for one in revised:
        changed = one.difference
        what = f"revision {one.number} ({one.by}): {one.change or 'accepted'}"
        yield _told(one.ref, 0, "≡", "plan", f"{one.plan} for {one.goal}, {what}")
        for sign, kind, steps in (("+", "success", changed.added), ("-", "error", changed.removed)):
            for step in steps:
                yield _told("", 1, sign, kind, f"{sign} {step.id} {_step_words(step)}")
        for two in changed.changed:
            yield _told(
                "", 1, "~", "warning", f"~ {two.new.id} {_step_words(two.old)} → {_step_words(two.new)}"
            )
        for each in changed.moved:
            yield _told("", 1, "↕", "warning", f"↕ {each.step.id} from place {each.was} to {each.now}")


def _evidence_lines(shown: Sequence[inquiry.Evidence]) -> Iterator[WhyLine]:
    """What there is to show for each goal."""
    for goal in shown:
        yield _told(goal.ref, 0, "●", "goal", f"{goal.goal} {goal.status}: {goal.text}")
        for one in goal.criteria:
            said = f"{one.step} {one.summary}" if one.holds else "NOTHING SHOWS IT"
            mark, kind = ("✓", "success") if one.holds else ("✗", "error")
            yield _told(one.ref, 1, mark, kind, f"{one.criterion}: {said}")
        for one in goal.results:
            yield _told(one.ref, 1, "·", "action", f"{one.step} {one.summary}")


def _step_words(step: PlanStep) -> str:
    return call_text(step.command, step.args) if step.command else clean_line(step.description, limit=120)
