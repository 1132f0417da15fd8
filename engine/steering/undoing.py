"""Undoing an operator's last change: the command that makes up for it, or why there is none.

Everything follows from the agent's events: what was done, how the state was before and after it, and how it
is now. The compensation is an ordinary command, shown before it is sent and recorded like any other; a redo
is the compensation of an undo. What makes up for which command is in `engine.steering.compensations`.
Source: steering §1 row 39 and §3 (operator undo).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.domain import commands as cmd
from engine.domain.state import AgentState
from engine.journal import events as ev
from engine.journal.event import Event
from engine.journal.past import Past
from engine.journal.store import JournalStore
from engine.steering.compensations import CANNOT, COMPENSATIONS, Around, UndoError

__all__ = ["Offer", "UndoError", "last_change"]

REACH = 200
"""Newest commands among which the one to undo is looked for."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What an undo would do."""

    of: str
    """Reference of the command that is undone."""
    by: str
    """Who gave it."""
    words: str
    """What would be done, in words."""
    command: cmd.Command
    again: bool = False
    """Whether this is a redo: what is undone is an undo."""

    def as_command(self, agent: str) -> cmd.Command:
        """The command to send: a rewind is rewound by itself, all else is an `Undo`."""
        if isinstance(self.command, cmd.Rewind):
            return self.command
        return cmd.Undo(agent=agent, of=self.of, command=self.command.model_dump(), again=self.again)


async def last_change(store: JournalStore, past: Past, now: AgentState, *, again: bool = False) -> Offer:
    """What undoes the newest change that an operator made and that is not undone yet.

    Args:
        store: the journal.
        past: of the agent.
        now: its present state, all of it durable.
        again: redo instead: what brings back the change that was undone last.

    Raises:
        UndoError: there is none, or it cannot be undone.
        JournalError: the journal cannot be read.
    """
    received = await store.last(REACH, past.stream, kind=ev.CommandReceived.kind)
    undone: set[str] = set()
    for event in reversed(received):
        command = _command_of(event)
        ended = await _ended(store, event, command) if command is not None else 0
        if command is None or not ended:
            continue
        if isinstance(command, cmd.Undo):
            if event.ref in undone:
                continue
            if not again or command.again:
                undone.add(command.of)
                continue
        elif event.ref in undone:
            continue
        elif again:
            raise UndoError("nothing was undone since your last change")
        inner = cmd.parse_command(command.command) if isinstance(command, cmd.Undo) else command
        before, after = await past.state(event.version), await past.state(ended)
        return _offer(event, inner, Around(before, after, now), again)
    raise UndoError("nothing was undone" if again else "there is no change of an operator's to undo")


def _command_of(event: Event) -> cmd.Command | None:
    said = ev.payload_of(event)
    assert isinstance(said, ev.CommandReceived)
    try:
        return cmd.parse_command(said.command)
    except ValueError:
        return None  # of another version


async def _ended(store: JournalStore, event: Event, command: cmd.Command) -> int:
    """The version of the last event by which a command was carried out; 0 where it changed nothing."""
    if isinstance(command, cmd.Rewind):
        kinds = (ev.Rewound.kind, ev.RewindFailed.kind, ev.CommandRefused.kind, ev.RewindCutOff.kind)
        found = await store.places(event.stream, kinds, event.version, event.version + 100_000)
        return found[0][0] if found and found[0][1] == ev.Rewound.kind else 0
    ended = 0
    for later in await store.read(event.stream, event.version + 1, event.version + 32):
        if event.ref not in later.causes or later.kind == ev.CommandRefused.kind:
            break
        ended = later.version
    return ended


def _offer(event: Event, command: cmd.Command, around: Around, again: bool) -> Offer:
    by = event.actor.removeprefix("operator:")
    if isinstance(command, cmd.Rewind):
        back = cmd.Rewind(agent=event.stream, to=event.version, scope=command.scope, paths=command.paths)
        return Offer(event.ref, by, f"take back the rewind to event {command.to}", back)
    if why := CANNOT.get(type(command)):
        raise UndoError(f"{command.do} of {by} cannot be undone: {why.format(at=event.version)}")
    make = COMPENSATIONS.get(type(command))
    if make is None:
        raise UndoError(f"{command.do} cannot be undone; rewind {event.version} takes back everything since")
    made, words = make(command, around)
    return Offer(event.ref, by, words, made, again)
