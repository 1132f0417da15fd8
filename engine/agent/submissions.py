"""Commands that their senders gave an id: each is carried out once, however often it is sent.

What this engine carried out is known by its receipt, the newest ones only. After a restart the journal knows
what an agent was told, as the command stands there with its id, but not the receipt's words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.journal import JournalError
from engine.core.store.port import JournalStore

KEPT = 1_024
"""Receipts that are kept."""
LOOKED = 256
"""Newest commands of an agent's earlier sessions among which an id is looked for."""
_Key = tuple[str, str]


class Submissions:
    """Finds out whether a command came before.

    Args:
        store: the journal.
    """

    def __init__(self, store: JournalStore) -> None:
        self._store = store
        self._known: dict[_Key, tuple[cmd.Command, asyncio.Task[cmd.Receipt]]] = {}
        self._recorded: dict[str, dict[_Key, tuple[int, str]]] = {}
        """The version and kind of the commands that agents were given before, by agent and id."""

    def carrying(
        self,
        command: cmd.Command,
        actor: str,
        carry_out: Callable[[cmd.Command, str], Coroutine[Any, Any, cmd.Receipt]],
    ) -> asyncio.Task[cmd.Receipt]:
        """The task that carries a command out, or did when it came first."""
        if not command.submission:
            return asyncio.create_task(carry_out(command, actor), name=command.do)
        key = (actor, command.submission)
        if (known := self._known.get(key)) is not None and not _failed(known[1]):
            first, task = known
            return task if first == command else asyncio.create_task(_another(command))
        task = asyncio.create_task(self._once(command, actor, carry_out), name=command.do)
        self._known[key] = (command, task)
        if len(self._known) > KEPT:
            ended = (each for each, (_, carried) in self._known.items() if carried.done())
            if (oldest := next(ended, None)) is not None:
                del self._known[oldest]
        return task

    async def _once(
        self,
        command: cmd.Command,
        actor: str,
        carry_out: Callable[[cmd.Command, str], Coroutine[Any, Any, cmd.Receipt]],
    ) -> cmd.Receipt:
        try:
            version, kind = await self._of_earlier(command, actor) if command.agent else (0, "")
        except JournalError as error:
            return cmd.Receipt(ok=False, message=f"whether it came before cannot be read: {error}")
        if not version:
            return await carry_out(command, actor)
        if kind != command.do:
            return await _another(command)
        event = f"{command.agent}:{version}"
        for after in await self._store.read(command.agent, version + 1, version + 1):
            if isinstance(refused := ev.payload_of(after), ev.CommandRefused) and event in after.causes:
                return cmd.Receipt(ok=False, message=str(refused.reason), event=event)
        return cmd.Receipt(ok=True, message="carried out before the engine started again", event=event)

    async def _of_earlier(self, command: cmd.Command, actor: str) -> tuple[int, str]:
        """Version and kind of the command that the agent was given under this id before; 0 for none."""
        if command.agent not in self._recorded:
            events = await self._store.last(LOOKED, command.agent, kind=ev.CommandReceived.kind)
            told = {}
            for event in events:
                payload = ev.payload_of(event)
                if isinstance(payload, ev.CommandReceived) and (ident := payload.command.get("submission")):
                    told[event.actor, ident] = event.version, str(payload.command.get("do"))
            self._recorded.setdefault(command.agent, told)
        return self._recorded[command.agent].get((actor, command.submission), (0, ""))


def _failed(task: asyncio.Task[cmd.Receipt]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _another(command: cmd.Command) -> cmd.Receipt:
    words = f"the id {command.submission} was given to another command before: each has one of its own"
    return cmd.Receipt(ok=False, message=words)
