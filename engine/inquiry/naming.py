"""What the bodies of events name besides their causes: the step that an action runs, the file that it reads.

Found by going along with the events of all streams once, in their order. Bodies are read as plain JSON, so
an event of a kind that this version does not know does no harm.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.journal import events as ev
from engine.journal.event import Event, of_agent

WRITES = frozenset({"write", "append", "replace"})
"""Commands of the sandbox tool that write the file they name."""
ARGUMENT_CHARACTERS = 512
"""Up to here an argument's text may be the name of a file."""
TOLD_MOST = 20
"""Results and changes of beliefs that a question to a thinker stands on: the newest since the one before."""
_CALL = ("op", "tool", "command", "args")
"""What of a step says what it does."""


@dataclass(frozen=True, slots=True)
class Touched:
    """Files that an action changed without naming them; paths from the sandbox's root."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Relation(StrEnum):
    """How an event stands on another one."""

    CAUSE = "cause"
    """It was recorded as a cause."""
    STEP = "step"
    """The plan has the step that it runs from there."""
    GOAL = "goal"
    """The goal that it serves was adopted or changed there."""
    AFTER = "after"
    """A step that it depends on was done there."""
    PLAN = "plan"
    """The plan that it changes was made there."""
    FILE = "file"
    """The file that it names was written there."""
    BELIEF = "belief"
    """The belief that it asks or removes was taken up there."""
    TOLD = "told"
    """The thinker that it asks was told this."""


@dataclass(frozen=True, slots=True)
class Basis:
    """One thing that an event stands on."""

    ref: str
    relation: Relation = Relation.CAUSE


@dataclass(slots=True)
class StreamNames:
    """What is known of one agent while its events go by."""

    goals: MutableMapping[str, str] = field(default_factory=dict)
    plans: MutableMapping[str, str] = field(default_factory=dict)
    """Goal to the event that made or last changed its plan."""
    steps: MutableMapping[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """Step to the event that gave it this call, and the step."""
    done: MutableMapping[str, str] = field(default_factory=dict)
    """Completed step to its end."""
    facts: MutableMapping[str, Any] = field(default_factory=dict)
    """Values of what was perceived."""
    told: list[str] = field(default_factory=list)
    """Advice that the thinker has not been asked with yet."""
    news: list[str] = field(default_factory=list)
    """Ends of actions and changes of beliefs since the thinker was last asked; at most `TOLD_MOST`."""
    cwd: str = "."
    action: dict[str, Any] = field(default_factory=dict)

    def learn(self, ref: str, instead: Iterable[str] = ()) -> None:
        """Something happened that the thinker is told when it is asked next, instead of something older."""
        self.news = [*(one for one in self.news if one not in instead), ref][-TOLD_MOST:]


class Names:
    """Goes along with the events of a workspace."""

    def __init__(self) -> None:
        self.beliefs: MutableMapping[tuple[str, str], str] = {}
        """Stream and key of each belief that is held, to the event that it was taken up by."""
        self.files: MutableMapping[str, str] = {}
        """Path of each written file from the sandbox's root, to the end of the action that wrote it last."""
        self.named: dict[tuple[str, str], list[str]] = {}
        """Owner and name (`a3`, `belief KEY`, `file PATH`, `error`) to their events, oldest first."""
        self.streams: dict[str, StreamNames] = {}
        self.touched: Mapping[tuple[str, str], Touched] = {}
        """Files that actions changed without naming them, by stream and action."""

    def note(self, event: Event) -> Iterable[Basis]:
        """Take the next event in; gives what its body names, an empty reference where that is not known."""
        handler = _HANDLERS.get(event.kind)
        if handler is None or not of_agent(event.stream):
            return ()
        return list(handler(self, self.of(event.stream), event, body_of(event)))

    def of(self, stream: str) -> StreamNames:
        """What is known of an agent."""
        known = self.streams.get(stream)
        if known is None:
            known = self.streams[stream] = StreamNames()
        return known

    def name(self, owner: str, name: str, ref: str) -> None:
        """Let an event be found by a name."""
        self.named.setdefault((owner, name), []).append(ref)

    def writers(self, stream: StreamNames, args: Mapping[str, Any]) -> Iterator[Basis]:
        """Who last wrote the files that a call's arguments name."""
        for path in _paths(args, stream.cwd):
            if path in self.files:
                yield Basis(self.files[path], Relation.FILE)


def body_of(event: Event) -> dict[str, Any]:
    """What an event says; empty where that is no JSON object."""
    try:
        said = json.loads(event.body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def plain_path(path: str, cwd: str = ".") -> str:
    """A path from the sandbox's root."""
    return posixpath.normpath(posixpath.join(cwd, path.removeprefix("sandbox/")))


def _paths(value: Any, cwd: str) -> Iterator[str]:
    """What in a call's arguments may be the name of a file."""
    if isinstance(value, str):
        if 0 < len(value) <= ARGUMENT_CHARACTERS and "\n" not in value:
            yield plain_path(value, cwd)
            yield from (plain_path(word, cwd) for word in value.split() if word != value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _paths(each, cwd)
    elif isinstance(value, list):
        for each in value:
            yield from _paths(each, cwd)


def texts(value: Any) -> list[str]:
    """The texts in what should be a list of texts."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""


def _steps(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = said.get("steps")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


_Handler = Callable[[Names, StreamNames, Event, dict[str, Any]], Iterable[Basis]]
_HANDLERS: dict[str, _Handler] = {}


def _on(*kinds: type[ev.Payload]) -> Callable[[_Handler], _Handler]:
    def register(handler: _Handler) -> _Handler:
        _HANDLERS.update((kind.kind, handler) for kind in kinds)
        return handler

    return register


@_on(ev.GoalAdopted, ev.GoalChanged, ev.GoalEnded)
def _goal(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    goal = _text(said, "goal")
    yield Basis(stream.goals.get(_text(said, "parent") or goal, ""), Relation.GOAL)
    names.name(event.stream, goal, event.ref)
    stream.goals[goal] = event.ref


@_on(ev.PlanAsked, ev.DecisionAsked)
def _asked(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    yield Basis(stream.goals.get(_text(said, "goal"), ""), Relation.GOAL)
    yield from (Basis(ref, Relation.TOLD) for ref in (*stream.told, *stream.news))
    stream.told.clear()
    stream.news.clear()


@_on(ev.GuidanceGiven, ev.BackgroundEnded)
def _told(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    if event.kind == ev.GuidanceGiven.kind or said.get("feedback"):
        stream.told.append(event.ref)
    if job := _text(said, "job"):
        names.name(event.stream, job, event.ref)
    yield from ()


@_on(ev.PlanAdopted, ev.PlanRevised)
def _plan(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    goal = _text(said, "goal")
    yield Basis(stream.plans.get(goal, ""), Relation.PLAN)
    if event.kind == ev.PlanAdopted.kind:
        yield Basis(stream.goals.get(goal, ""), Relation.GOAL)
    stream.plans[goal] = event.ref
    names.name(event.stream, _text(said, "plan"), event.ref)
    for step in _steps(said):
        ident = _text(step, "id")
        known = stream.steps.get(ident)
        if known is None or any(known[1].get(name) != step.get(name) for name in _CALL):
            stream.steps[ident] = (event.ref, step)
            names.name(event.stream, ident, event.ref)


@_on(ev.StepEnded)
def _step(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    step = _text(said, "step")
    names.name(event.stream, step, event.ref)
    if said.get("status") == "completed":
        stream.done[step] = event.ref
    else:
        stream.done.pop(step, None)
    yield from ()


@_on(ev.ActionRequested)
def _requested(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    args = said.get("args")
    stream.action = {**said, "args": args if isinstance(args, dict) else {}}
    names.name(event.stream, _text(said, "action"), event.ref)
    made, step = stream.steps.get(_text(said, "step"), ("", {}))
    yield Basis(made, Relation.STEP)
    yield Basis(stream.goals.get(_text(said, "goal"), ""), Relation.GOAL)
    yield from (Basis(stream.done.get(one, ""), Relation.AFTER) for one in texts(step.get("depends_on")))
    if said.get("command") == "write":
        return  # what a file held before is of no matter to what replaces it whole
    if said.get("tool") != "mind":
        yield from names.writers(stream, stream.action["args"])
    elif said.get("command") in ("test", "remove"):
        key = str(stream.action["args"].get("key"))
        yield Basis(names.beliefs.get((event.stream, key), ""), Relation.BELIEF)


@_on(ev.ParametersProcessed)
def _parameters(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    names.name(event.stream, _text(said, "action"), event.ref)
    if isinstance(said.get("args"), dict):
        stream.action["args"] = said["args"]
        if stream.action.get("command") != "write":
            yield from names.writers(stream, said["args"])


_ENDS = frozenset((ev.ActionFinished.kind, ev.ActionCancelled.kind, ev.ActionOutcomeUnknown.kind))


@_on(
    *(ev.ActionStarted, ev.ActionHeld, ev.ActionWithdrawn, ev.ActionFinished),
    *(ev.ActionCancelled, ev.ActionOutcomeUnknown),
)
def _action(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    names.name(event.stream, _text(said, "action"), event.ref)
    if event.kind == ev.ActionFinished.kind and said.get("status") == "SUCCESS":
        args, path = stream.action.get("args", {}), stream.action.get("args", {}).get("path")
        wrote = stream.action.get("tool") == "simple_coder" and stream.action.get("command") in WRITES
        if wrote and args and isinstance(path, str):
            whole = plain_path(path, stream.cwd)
            names.files[whole] = event.ref
            names.name("", f"file {whole}", event.ref)
    if event.kind in _ENDS and (touched := names.touched.get((event.stream, _text(said, "action")))):
        for whole in touched.written:
            names.files[whole] = event.ref
            names.name("", f"file {whole}", event.ref)
        for whole in touched.removed:
            names.files.pop(whole, None)
            names.name("", f"file {whole}", event.ref)
    if event.kind in _ENDS:
        stream.learn(event.ref)
    _move(stream, said)
    yield from ()


@_on(ev.BeliefAdded, ev.BeliefRemoved)
def _belief(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    key = _text(said, "key")
    replaced = names.beliefs.pop((event.stream, key), "")
    names.name(event.stream, f"belief {key}", event.ref)
    stream.learn(event.ref, instead=(replaced, *event.causes))
    if event.kind == ev.BeliefAdded.kind:
        names.beliefs[event.stream, key] = event.ref
        stream.facts[key] = said.get("value")
    else:
        yield Basis(replaced, Relation.BELIEF)
        stream.facts.pop(key, None)


@_on(ev.ReasonerAdvanced)
def _advanced(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    for text in texts(said.get("forgotten")):
        if names.beliefs.pop((event.stream, text), None) is not None:
            names.name(event.stream, f"belief {text}", event.ref)
    believed = said.get("believed")
    for held in believed if isinstance(believed, list) else ():
        if isinstance(held, dict) and (text := _text(held, "text")):
            names.beliefs[event.stream, text] = event.ref
            names.name(event.stream, f"belief {text}", event.ref)
    yield from ()


@_on(ev.WorldPerceived)
def _perceived(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    facts = said.get("facts")
    for key, value in facts.items() if isinstance(facts, dict) else ():
        if value is None:
            if names.beliefs.pop((event.stream, key), None) is not None:
                names.name(event.stream, f"belief {key}", event.ref)
            stream.facts.pop(key, None)
        elif (event.stream, key) not in names.beliefs or stream.facts.get(key) != value:
            names.beliefs[event.stream, key] = event.ref
            stream.facts[key] = value
            names.name(event.stream, f"belief {key}", event.ref)
    _move(stream, said)
    yield from ()


@_on(ev.ChangesSettled)
def _settled(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    _move(stream, said)
    yield from ()


@_on(ev.FailureRecorded)
def _failure(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    names.name(event.stream, "error", event.ref)
    yield from ()


@_on(ev.BackgroundStarted, ev.JobStarted, ev.JobEnded)
def _job(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    names.name(event.stream, _text(said, "job"), event.ref)
    yield from ()


@_on(ev.GenerationBegun, ev.GenerationSettled)
def _generation(names: Names, stream: StreamNames, event: Event, said: dict[str, Any]) -> Iterator[Basis]:
    names.name(event.stream, _text(said, "generation"), event.ref)
    yield from ()


def _move(stream: StreamNames, said: dict[str, Any]) -> None:
    """Follow the session's directory."""
    session = said.get("session")
    if isinstance(session, dict) and isinstance(session.get("cwd"), str):
        stream.cwd = session["cwd"]
