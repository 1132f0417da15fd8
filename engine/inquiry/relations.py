"""What the bodies of events name besides their causes: the step that an action runs, the file that it reads.

Found by going along with the events of all streams once, in their order. Bodies are read as plain JSON, so
an event of a kind that this version does not know does no harm.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from engine.core import events as ev
from engine.core.journal import Event, canonical, of_agent
from engine.value import asdict, dataclass, field

WRITES = frozenset({"write", "append", "replace"})
"""Commands of the sandbox tool that write the file they name."""
ARGUMENT_CHARACTERS = 512
"""Up to here an argument's text may be the name of a file."""
TOLD_MOST = 20
"""Results and changes of beliefs that a question to a thinker depends on: the newest since the one before."""
_CALL = ("op", "tool", "command", "args")
"""What of a step says what it does."""


@dataclass(frozen=True, slots=True)
class TouchedFiles:
    """Files that an action changed without naming them; paths from the sandbox's root."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Relation(StrEnum):
    """How an event depends on another one."""

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
    """The belief that it asks or removes was adopted there."""
    TOLD = "told"
    """The thinker that it asks was told this."""


@dataclass(frozen=True, slots=True)
class Basis:
    """One thing that an event depends on."""

    ref: str
    relation: Relation = Relation.CAUSE


@dataclass(slots=True)
class StreamRelations:
    """What is known of one agent while its events go by."""

    goals: dict[str, str] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)
    """Goal to the event that made or last changed its plan."""
    steps: dict[str, Sequence[Any]] = field(default_factory=dict)
    """Step to the event that gave it this call, the call's digest, and the steps that it depends on."""
    done: dict[str, str] = field(default_factory=dict)
    """Completed step to its end."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Values of what was perceived."""
    told: list[str] = field(default_factory=list)
    """Advice that the thinker has not been asked with yet."""
    news: list[str] = field(default_factory=list)
    """Ends of actions and changes of beliefs since the thinker was last asked; at most `TOLD_MOST`."""
    cwd: str = "."
    action: dict[str, Any] = field(default_factory=dict)

    def learn(self, ref: str, instead: Iterable[str] = ()) -> None:
        """Something happened that the thinker is told when it is asked next, instead of something older."""
        self.news = [*(older for older in self.news if older not in instead), ref][-TOLD_MOST:]


class EventRelations:
    """Follows the events of a workspace."""

    def __init__(self) -> None:
        self.beliefs: dict[tuple[str, str], str] = {}
        """Stream and key of each belief that is held, to the event that adopted it."""
        self.files: dict[str, str] = {}
        """Path of each written file from the sandbox's root, to the end of the action that wrote it last."""
        self.named: dict[tuple[str, str], list[str]] = {}
        """Owner and name (`a3`, `belief KEY`, `file PATH`, `error`) to their events, oldest first."""
        self.streams: dict[str, StreamRelations] = {}
        self.touched: Mapping[tuple[str, str], TouchedFiles] = {}
        """Files that actions changed without naming them, by stream and action."""

    def save(self) -> dict[str, Any]:
        """What is known, but for the names, ready for JSON."""
        return {
            "beliefs": [[*key, ref] for key, ref in self.beliefs.items()],
            "files": self.files,
            "streams": {stream: asdict(known) for stream, known in self.streams.items()},
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Know what `save` gave."""
        self.beliefs = {(stream, key): ref for stream, key, ref in data["beliefs"]}
        self.files = dict(data["files"])
        self.streams = {stream: StreamRelations(**known) for stream, known in data["streams"].items()}

    def note(self, event: Event) -> Iterable[Basis]:
        """Take the next event in; gives what its body names, an empty reference where that is not known."""
        name, handler = _KINDS.get(event.kind, ("", None))
        if event.kind not in _KINDS or not of_agent(event.stream):
            return ()
        body = body_of(event)
        given = _text(body, name) if name else ""
        if given:
            self.name(event.stream, given, event.ref)
        return list(handler(self, self.of(event.stream), event, body) or ()) if handler is not None else ()

    def of(self, stream: str) -> StreamRelations:
        """What is known of an agent."""
        return self.streams.setdefault(stream, StreamRelations())

    def name(self, owner: str, name: str, ref: str) -> None:
        """Let an event be found by a name."""
        self.named.setdefault((owner, name), []).append(ref)

    def write(self, path: str, ref: str) -> None:
        """A file was written."""
        self.files[path] = ref
        self.name("", f"file {path}", ref)

    def believe(self, event: Event, key: str) -> None:
        """A belief was adopted."""
        self.beliefs[event.stream, key] = event.ref
        self.name(event.stream, f"belief {key}", event.ref)

    def forget(self, event: Event, key: str) -> None:
        """A belief was given up, if it was held."""
        if self.beliefs.pop((event.stream, key), None) is not None:
            self.name(event.stream, f"belief {key}", event.ref)

    def writers(self, stream: StreamRelations, args: Mapping[str, Any]) -> Iterator[Basis]:
        """Who last wrote the files that a call's arguments name."""
        for path in _paths(args, stream.cwd):
            if path in self.files:
                yield Basis(self.files[path], Relation.FILE)


def body_of(event: Event) -> dict[str, Any]:
    """What an event says; empty where that is no JSON object."""
    try:
        body = json.loads(event.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


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


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def _steps(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = body.get("steps")
    return [step for step in given if isinstance(step, dict)] if isinstance(given, list) else []


_Handler = Callable[["EventRelations", StreamRelations, Event, dict[str, Any]], Iterable[Basis] | None]


def _goal(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> list[Basis]:
    goal = _text(body, "goal")
    before = stream.goals.get(_text(body, "parent") or goal, "")
    stream.goals[goal] = event.ref
    return [Basis(before, Relation.GOAL)]


def _asked(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> list[Basis]:
    advice = [Basis(ref, Relation.TOLD) for ref in (*stream.told, *stream.news)]
    stream.told.clear()
    stream.news.clear()
    return [Basis(stream.goals.get(_text(body, "goal"), ""), Relation.GOAL), *advice]


def _told(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> None:
    if event.kind == ev.GuidanceGiven.kind or body.get("feedback"):
        stream.told.append(event.ref)


def _plan(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> list[Basis]:
    goal = _text(body, "goal")
    bases = [Basis(stream.plans.get(goal, ""), Relation.PLAN)]
    if event.kind == ev.PlanAdopted.kind:
        bases.append(Basis(stream.goals.get(goal, ""), Relation.GOAL))
    stream.plans[goal] = event.ref
    for step in _steps(body):
        ident = _text(step, "id")
        text = canonical([step.get(name) for name in _CALL])
        call = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        if ident not in stream.steps or stream.steps[ident][1] != call:
            stream.steps[ident] = (event.ref, call, texts(step.get("depends_on")))
            names.name(event.stream, ident, event.ref)
    return bases


def _step(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> None:
    step = _text(body, "step")
    if body.get("status") == "completed":
        stream.done[step] = event.ref
    else:
        stream.done.pop(step, None)


def _requested(
    names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]
) -> Iterator[Basis]:
    args = body.get("args")
    stream.action = {**body, "args": args if isinstance(args, dict) else {}}
    made, _, needs = stream.steps.get(_text(body, "step"), ("", "", ()))
    yield Basis(made, Relation.STEP)
    yield Basis(stream.goals.get(_text(body, "goal"), ""), Relation.GOAL)
    for needed in needs:
        yield Basis(stream.done.get(needed, ""), Relation.AFTER)
    if body.get("command") == "write":
        return  # what a file held before is of no matter to what replaces it whole
    if body.get("tool") != "mind":
        yield from names.writers(stream, stream.action["args"])
    elif body.get("command") in ("test", "remove"):
        key = str(stream.action["args"].get("key"))
        yield Basis(names.beliefs.get((event.stream, key), ""), Relation.BELIEF)


def _parameters(
    names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]
) -> Iterator[Basis]:
    if isinstance(body.get("args"), dict):
        stream.action["args"] = body["args"]
        if stream.action.get("command") != "write":
            yield from names.writers(stream, body["args"])


def _finished(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> None:
    if event.kind == ev.ActionFinished.kind and body.get("status") == "SUCCESS":
        path = stream.action.get("args", {}).get("path")
        wrote = stream.action.get("tool") == "simple_coder" and stream.action.get("command") in WRITES
        if wrote and isinstance(path, str):
            names.write(plain_path(path, stream.cwd), event.ref)
    if touched := names.touched.get((event.stream, _text(body, "action"))):
        for whole in touched.written:
            names.write(whole, event.ref)
        for whole in touched.removed:
            names.files.pop(whole, None)
            names.name("", f"file {whole}", event.ref)
    stream.learn(event.ref)
    _move(names, stream, event, body)


def _belief(
    names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]
) -> list[Basis]:
    key = _text(body, "key")
    replaced = names.beliefs.pop((event.stream, key), "")
    names.name(event.stream, f"belief {key}", event.ref)
    stream.learn(event.ref, instead=(replaced, *event.causes))
    if event.kind == ev.BeliefAdded.kind:
        names.beliefs[event.stream, key] = event.ref
        stream.facts[key] = body.get("value")
        return []
    stream.facts.pop(key, None)
    return [Basis(replaced, Relation.BELIEF)]


def _advanced(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> None:
    for text in texts(body.get("forgotten")):
        names.forget(event, text)
    believed = body.get("believed")
    for held in believed if isinstance(believed, list) else ():
        if isinstance(held, dict) and (text := _text(held, "text")):
            names.believe(event, text)


def _perceived(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> None:
    facts = body.get("facts")
    for key, value in facts.items() if isinstance(facts, dict) else ():
        if value is None:
            names.forget(event, key)
            stream.facts.pop(key, None)
        elif (event.stream, key) not in names.beliefs or stream.facts.get(key) != value:
            names.believe(event, key)
            stream.facts[key] = value
    _move(names, stream, event, body)


def _failure(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> None:
    names.name(event.stream, "error", event.ref)


def _move(names: EventRelations, stream: StreamRelations, event: Event, body: dict[str, Any]) -> None:
    """Follow the session's directory."""
    session = body.get("session")
    if isinstance(session, dict) and isinstance(session.get("cwd"), str):
        stream.cwd = session["cwd"]


_TABLE: tuple[tuple[tuple[type[ev.Payload], ...], str, _Handler | None], ...] = (
    ((ev.GoalAdopted, ev.GoalChanged, ev.GoalEnded), "goal", _goal),
    ((ev.PlanAsked, ev.DecisionAsked), "", _asked),
    ((ev.GuidanceGiven, ev.BackgroundEnded), "job", _told),
    ((ev.PlanAdopted, ev.PlanRevised), "plan", _plan),
    ((ev.StepEnded,), "step", _step),
    ((ev.ActionRequested,), "action", _requested),
    ((ev.ParametersProcessed,), "action", _parameters),
    ((ev.ActionStarted, ev.ActionHeld, ev.ActionWithdrawn), "action", _move),
    ((ev.ActionFinished, ev.ActionCancelled, ev.ActionOutcomeUnknown), "action", _finished),
    ((ev.BeliefAdded, ev.BeliefRemoved), "", _belief),
    ((ev.ReasonerAdvanced,), "", _advanced),
    ((ev.WorldPerceived,), "", _perceived),
    ((ev.ChangesSettled,), "", _move),
    ((ev.FailureRecorded,), "", _failure),
    ((ev.BackgroundStarted, ev.JobStarted, ev.JobEnded), "job", None),
    ((ev.GenerationBegun, ev.GenerationSettled), "generation", None),
)
"""Kinds of events, the field by which they are found, and what else they say."""
_KINDS = {kind.kind: (name, handler) for kinds, name, handler in _TABLE for kind in kinds}
