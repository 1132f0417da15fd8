"""The MCP servers of an open workspace: begun as far as they have leave, and given it by commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.domain.command import Receipt
from engine.domain.ports import Clock
from engine.domain.server_commands import DistrustServer, ForServers, TrustServer
from engine.domain.text import clean_line
from engine.journal.log import StreamLog
from engine.journal.server_events import ServerDistrusted
from engine.journal.store import JournalStore
from engine.mcp.fleet import Servers
from engine.mcp.health import ServerView
from engine.mcp.leave import (
    ENTRY_SHOWN,
    Leave,
    Standing,
    asked_for,
    command_line,
    entry_of,
    question,
    refused_by,
)
from engine.mcp.process import Surroundings
from engine.mcp.servers import Server
from engine.mcp.settings import McpSettings, ServerSettings

_ENTRY_LEAST = 8
"""Characters of a hash by which an entry may be named."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A server of `mcp.json` as an operator has to see it before they give leave; safe to show."""

    server: str
    entry: str
    """The hash that `TrustServer` may name."""
    line: str
    """Its whole command line, or its address."""
    facts: tuple[tuple[str, str], ...]
    """All that is to be known before, as labels and texts."""
    since: str = ""
    waits: bool = True
    """Whether nothing of it runs for want of leave."""
    refused: bool = False
    """Whether it was refused already."""

    @property
    def how(self) -> str:
        """How leave is given, on a line."""
        return asked_for(self.server)


class StartedServers(Servers):
    """The servers of a workspace, those without leave withheld.

    Args:
        settings: the workspace's and the user's.
        around: where programs run.
        clock: the time.
        told: called with each change of a server.
        leave: what the operator said.
        log: the workspace's stream, where it is recorded.
    """

    def __init__(
        self,
        settings: McpSettings,
        around: Surroundings,
        clock: Clock,
        told: Callable[[ServerView], None],
        leave: Leave,
        log: StreamLog,
    ) -> None:
        self._leave, self._log, self._workspace = leave, log, around.workspace
        self._shown: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {}
        """Entry, line and facts by name, as these are asked for with each key in the command bar."""
        super().__init__(settings, around, clock, told, self._withheld)

    def _withheld(self, settings: ServerSettings) -> str:
        word = self._leave.word(settings)
        if word.standing in (Standing.OWN, Standing.GIVEN):
            return ""
        return (
            refused_by(settings.name, word) if word.standing is Standing.REFUSED else asked_for(settings.name)
        )

    @property
    def asked(self) -> tuple[Entry, ...]:
        """The entries that wait for leave; those that were refused it last."""
        found = (one for one in self.entries if one.waits)
        return tuple(sorted(found, key=lambda one: one.refused))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of the workspace's own `mcp.json`, as they need leave."""
        return tuple(self._entry(one) for one in self.servers if not one.settings.own)

    def _entry(self, server: Server) -> Entry:
        settings, word = server.settings, self._leave.word(server.settings)
        if settings.name not in self._shown:
            found = (entry_of(settings), command_line(settings), question(settings, self._workspace))
            self._shown[settings.name] = found
        return Entry(
            settings.name,
            *self._shown[settings.name],
            server.view.since,
            word.standing is not Standing.GIVEN,
            word.standing is Standing.REFUSED,
        )

    async def carry_out(self, command: ForServers, actor: str) -> Receipt:
        """Give leave or take it back; it is on record before anything starts.

        Raises:
            JournalError: it cannot be recorded; nothing was started.
        """
        match command:
            case TrustServer():
                return await self._trust(command, actor)
            case DistrustServer():
                return await self._distrust(command, actor)
        return Receipt(ok=False, message=f"{command.do} is not known here")

    def _named(self, name: str) -> Server | Receipt:
        server = self.get(name)
        if server is None:
            names = ", ".join(view.name for view in self.views) or "none"
            said = f"mcp.json names no server {clean_line(name, limit=40)!r}; servers: {names}"
            return Receipt(ok=False, message=said)
        if server.settings.own:
            return Receipt(ok=False, message=f"{server.name} is of your own settings and needs no leave")
        return server

    async def _trust(self, command: TrustServer, actor: str) -> Receipt:
        server = self._named(command.server)
        if isinstance(server, Receipt):
            return server
        settings, entry = server.settings, entry_of(server.settings)
        if command.entry and not (len(command.entry) >= _ENTRY_LEAST and entry.startswith(command.entry)):
            said = (
                f"the entry of {server.name} is another one than you were shown: it is {entry[:ENTRY_SHOWN]}"
            )
            return Receipt(ok=False, message=said)
        if self._leave.word(settings).standing is Standing.GIVEN:
            return Receipt(ok=True, message=f"{server.name} has your leave already")
        payload = await asyncio.to_thread(self._leave.given, settings)
        event = self._log.append(payload, actor=actor, causes=(), tick=0)
        await self._log.commit()
        self._leave.take(payload, event.actor, event.at, event.ref)
        server.allow()
        how = "as long as its entry stays the same" if self._leave.lasting else "until this session ends"
        message = f"{server.name} starts, now and later, {how}: {payload.what}"
        return Receipt(
            ok=True, message=message, event=event.ref, data={"server": server.name, "entry": entry}
        )

    async def _distrust(self, command: DistrustServer, actor: str) -> Receipt:
        server = self._named(command.server)
        if isinstance(server, Receipt):
            return server
        payload = ServerDistrusted(server=server.name, entry=entry_of(server.settings))
        event = self._log.append(payload, actor=actor, causes=(), tick=0)
        self._leave.take(payload, event.actor, event.at, event.ref)
        await server.withhold(self._withheld(server.settings))
        await self._log.commit()
        message = f"{server.name} has no leave; nothing of it runs"
        return Receipt(ok=True, message=message, event=event.ref, data={"server": server.name})


async def open_servers(
    settings: McpSettings,
    around: Surroundings,
    clock: Clock,
    told: Callable[[ServerView], None],
    *,
    home: Path | None,
    store: JournalStore,
    log: StreamLog,
) -> StartedServers:
    """The servers of a workspace with what the operator said about them; not begun yet.

    Args:
        settings: the workspace's and the user's.
        around: where programs run.
        clock: the time.
        told: called with each change of a server.
        home: the user's own directory, see `Leave`.
        store: where earlier words are read.
        log: the workspace's stream.
    """
    leave = Leave(around.workspace, home)
    await leave.restore(store)
    return StartedServers(settings, around, clock, told, leave, log)
