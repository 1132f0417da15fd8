"""Goals that agents with a program pursued, run again from the record with a changed program.

Nothing is done again: actions are answered by what they answered then. That is exact as long as the program
does the same deeds in the same order, for a look (`read`, `ls`, `find`) says the same wherever it stands
between two deeds, if nobody else changed the files meanwhile. A program that asks for anything else leaves
the record, and nothing can be said of what would have come of it. Where something came in from outside while
a goal was pursued (a message, a wait that ended, a percept, the operator), the record is used up to there.
Source: issue 8 (plan libraries), steering spec §3 idea 13.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.bdi.parser import parse_program
from engine.bdi.terms import Struct, canonical
from engine.domain.reasoning import REASONER, REQUEST, WantedAction
from engine.journal import events as ev
from engine.journal.errors import JournalReadError
from engine.journal.event import Event
from engine.journal.schema import read_only_uri
from engine.journal.store import DATA_DIRECTORY, DATABASE
from engine.reasoner.actions import TOOL, ActionTable, answered
from engine.reasoner.config import read_config
from engine.reasoner.reasoner import Reasoner
from engine.reasoner.run import Run
from engine.tools.arguments import check_arguments
from engine.tools.simple_coder_commands import COMMANDS

LOOKS = frozenset({"ls", "read", "find", "help", "policy"})
"""Commands that change nothing, not even where the agent stands."""
MOST_PHASES = 20_000
"""Parts of reasoning cycles after which a goal is given up."""
ADVANCED = "reasoner.advanced"
_INPUTS = ("world.perceived", "belief.added", "belief.removed", "reasoner.belief_told")
_USED = (
    "agent.created",
    "goal.adopted",
    "goal.ended",
    "action.requested",
    "action.finished",
    ADVANCED,
    *_INPUTS,
)
_CUTS = {
    "reasoner.time_passed": "it waited for time to pass",
    "reasoner.message_heard": "it heard a message",
    "reasoner.intention_steered": "the operator steered an intention",
    "generation.begun": "plans were made for it",
    "generation.settled": "plans were made for it",
    "action.cancelled": "an action was cancelled",
    "action.withdrawn": "an action was withdrawn",
    "action.outcome_unknown": "nobody knows what an action did",
    "agent.rewound": "it was rewound",
    "agent.forked": "it is a fork",
}


@dataclass(frozen=True, slots=True)
class Answered:
    """An action that was done, and what came of it."""

    tool: str
    command: str
    args: dict[str, Any]
    ok: bool
    reason: str
    result: dict[str, Any]

    @property
    def is_look(self) -> bool:
        """Whether it changed nothing."""
        return self.tool == TOOL and self.command in LOOKS

    def is_what(self, wanted: WantedAction) -> bool:
        """Whether it is what a program asks for."""
        same = (self.tool, self.command) == (wanted.tool, wanted.command)
        return same and _filled(self.command, self.args) == _filled(wanted.command, wanted.args)


def _filled(command: str, args: dict[str, Any]) -> dict[str, Any]:
    """Arguments with the defaults of those that were left out, as the record has them."""
    known = COMMANDS.get(command)
    return check_arguments(known, args).args if known is not None else args


@dataclass(slots=True)
class RecordedGoal:
    """A goal, what came in with it, and what was done for it."""

    ref: str
    id: str
    text: str
    inputs: list[Event] = field(default_factory=list)
    """Its adoption, and what was perceived and told before it was begun."""
    actions: list[Answered] = field(default_factory=list)
    status: str = ""

    @property
    def mark(self) -> str:
        """The same for goals of which one teaches no more than the other."""
        said = [[one.command, one.args, one.ok, one.result] for one in self.actions]
        return json.dumps([self.text, said], sort_keys=True, ensure_ascii=False)


@dataclass(slots=True)
class Recording:
    """An agent with a program: its goals one after the other, as long as nothing came between."""

    agent: str
    created: Event
    meta: dict[str, Any]
    goals: list[RecordedGoal] = field(default_factory=list)
    cut: str = ""
    """Why nothing behind the last goal is used; empty where all is."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """What came of a goal."""

    ref: str
    achieved: bool
    cycles: int
    left: str = ""
    """What the record does not know; empty where it knew everything."""


def read_recordings(workspace: Path) -> list[Recording]:
    """The agents with a program that there are or were; blocking.

    Raises:
        JournalReadError: the journal cannot be read.
    """
    path = workspace / DATA_DIRECTORY / DATABASE
    if not path.exists():
        return []
    kinds = (*_USED, *_CUTS)
    marks = ", ".join("?" * len(kinds))
    sql = (
        "select stream, version, at, tick, actor, causes, kind, "
        f"case when kind = '{ADVANCED}' then '{{}}' else body end, hash, seq from events where stream in "
        f"(select stream from events where kind = 'agent.created' and instr(body, '{REASONER}') > 0) "
        f"and +kind in ({marks}) order by stream, version"
    )
    found: dict[str, _Reading] = {}
    try:
        connection = sqlite3.connect(read_only_uri(path), uri=True, isolation_level=None, timeout=5)
        with closing(connection), closing(connection.execute(sql, kinds)) as rows:
            for row in rows:
                stream, version, at, tick, actor, causes, *rest = row
                event = Event(stream, version, at, tick, actor, tuple(json.loads(causes)), *rest)
                found.setdefault(event.stream, _Reading()).take(event)
    except sqlite3.Error as error:
        raise JournalReadError(f"{path} cannot be read just now ({error}).") from error
    return [one.recording for one in found.values() if one.recording is not None]


class _Reading:
    """One agent's recording as it is put together."""

    def __init__(self) -> None:
        self.recording: Recording | None = None
        self._inputs: list[Event] = []
        self._goal: RecordedGoal | None = None
        self._begun = False
        self._asked: dict[str, dict[str, Any]] = {}

    def take(self, event: Event) -> None:
        """Take in one event."""
        if event.kind == "agent.created":
            said = json.loads(event.body)
            if said.get("agent_type") == REASONER:
                self.recording = Recording(event.stream, event, said["config"]["meta"])
            return
        if self.recording is None or self.recording.cut:
            return
        if why := self._cut(event):
            self.recording.cut = f"{why} ({event.ref})"
            return
        self._taken(event, self.recording)

    def _cut(self, event: Event) -> str:
        if event.kind in _CUTS:
            return _CUTS[event.kind]
        if event.kind == "goal.adopted" and self._goal is not None:
            return "it pursued several goals at once"
        if event.kind in _INPUTS and self._goal is not None and self._begun:
            return "something was perceived or told while a goal was pursued"
        if event.kind == "action.requested":
            step = json.loads(event.body)["step"]
            if not step.startswith(REQUEST) or self._goal is None:
                return "the operator did something in between"
        if event.kind == "action.finished":
            said = json.loads(event.body)
            if said.get("blob") or said.get("world") is not None:
                return "it lives in a small world, or an answer was too long"
        return ""

    def _taken(self, event: Event, recording: Recording) -> None:
        said = json.loads(event.body)
        match event.kind:
            case "goal.adopted":
                self._goal = RecordedGoal(event.ref, said["goal"], said["text"], [*self._inputs, event])
                self._inputs, self._begun = [], False
            case "reasoner.advanced":
                self._begun = self._goal is not None
            case "action.requested":
                self._asked[said["action"]] = said
            case "action.finished":
                asked = self._asked.pop(said["action"], None)
                if asked is not None and self._goal is not None:
                    self._goal.actions.append(_answer(asked, said))
            case "goal.ended":
                if self._goal is not None and self._goal.id == said["goal"]:
                    self._goal.status = said["status"]
                    recording.goals.append(self._goal)
                    self._goal = None
            case _:
                (self._goal.inputs if self._goal is not None else self._inputs).append(event)


def _answer(asked: dict[str, Any], said: dict[str, Any]) -> Answered:
    code, result = said["code"], said["result"]
    reason = "" if code is None else str(result.get("message") or said["summary"] or code)
    return Answered(asked["tool"], asked["command"], asked["args"], code is None, reason, result)


def rerun(recording: Recording, program: str) -> Iterator[Rerun]:
    """What comes of an agent's goals, one after the other, with a program; blocking.

    It ends behind the first goal that leaves the record, as nobody knows how things stand after it.

    Raises:
        ProgramError: the program cannot be read.
    """
    mind = _mind(recording, program)
    for goal in recording.goals:
        done = _Replay(mind, goal).done()
        yield done
        if done.left:
            return


def _mind(recording: Recording, program: str) -> Reasoner:
    meta = {**recording.meta, "program": program, "world": "", "generation": {"on": False}}
    parse_program(program, str(meta.get("source") or "program.asl"))
    config = read_config(meta)
    return Reasoner(recording.agent, config, ActionTable.of((TOOL, COMMANDS)), recording.created.at)


class _Replay:
    """One goal as it is pursued again."""

    def __init__(self, mind: Reasoner, goal: RecordedGoal) -> None:
        self._mind, self._goal = mind, goal
        deeds = [number for number, one in enumerate(goal.actions) if not one.is_look]
        self._deeds = [*deeds, len(goal.actions)]
        """Places of the deeds, and the end."""
        self._done = 0
        """Deeds done."""

    def done(self) -> Rerun:
        """Go on until the goal has ended, nothing goes on, or the record does not know."""
        mind = self._mind
        for event in self._goal.inputs:
            mind.take(event, ev.payload_of(event))
        begun, phases = mind.agent.cycles, 0
        while phases < MOST_PHASES:
            run = Run()
            mind.advance(run, lambda done: done < MOST_PHASES)
            phases += max(1, run.phases)
            wanted, idle = list(run.wanted), mind.state().idle
            ended = [one for one in mind.close((self._goal.id,)) if isinstance(one, ev.GoalEnded)]
            cycles = mind.agent.cycles - begun
            if ended:
                rest = self._deeds[self._done] < len(self._goal.actions)
                left = f"{self._shown(self._deeds[self._done])} is left out" if rest else ""
                return Rerun(self._goal.ref, ended[0].status == "achieved", cycles, left)
            for one in wanted:
                if not self._fed(one):
                    return Rerun(self._goal.ref, False, cycles, f"nobody knows what {one.text} would answer")
            if idle and not wanted:
                return Rerun(self._goal.ref, False, cycles, "it waits for something that never came")
        return Rerun(self._goal.ref, False, mind.agent.cycles - begun, "it does not come to an end")

    def _fed(self, wanted: WantedAction) -> bool:
        """Give a request the recorded answer; False where there is none."""
        found = self._known(wanted)
        if found is None:
            return False
        agent = self._mind.agent
        intention = agent.pending.get(wanted.number)
        if intention is not None and intention.pending is not None:
            action = canonical(intention.pending.what)
            assert isinstance(action, Struct)
            agent.feedback(wanted.number, found.ok, found.reason, answered(action, found.result))
        return True

    def _known(self, wanted: WantedAction) -> Answered | None:
        actions, next_deed = self._goal.actions, self._deeds[self._done]
        if next_deed < len(actions) and actions[next_deed].is_what(wanted):
            self._done += 1
            return actions[next_deed]
        first = self._deeds[self._done - 1] + 1 if self._done else 0
        return next((one for one in actions[first:next_deed] if one.is_what(wanted)), None)

    def _shown(self, number: int) -> str:
        one = self._goal.actions[number]
        return f"{one.command} {json.dumps(one.args, ensure_ascii=False)}"


def exact(recordings: Sequence[Recording], program: str) -> tuple[dict[str, int], tuple[str, ...]]:
    """The goals that a program comes to the same end with as it is recorded, with the cycles of each.

    Goals that are told alike and were answered alike count once.

    Returns:
        Cycles by the event by which a goal was adopted, and in words why others are passed over.

    Raises:
        ProgramError: the program cannot be read.
    """
    cycles: dict[str, int] = {}
    marks: set[str] = set()
    why: list[str] = [f"{one.agent}: {one.cut}" for one in recordings if one.cut]
    for recording in recordings:
        for goal, done in zip(recording.goals, rerun(recording, program), strict=False):
            if done.left or done.achieved != (goal.status == "achieved"):
                why.append(f"{goal.ref}: {done.left or 'it ends otherwise than it is recorded'}")
                break
            if goal.mark not in marks:
                marks.add(goal.mark)
                cycles[goal.ref] = done.cycles
    return cycles, tuple(why)
