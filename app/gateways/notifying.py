"""Tells an operator who is away of what waits: by a POST as ntfy takes it, or a program of their own."""

from __future__ import annotations

import asyncio
import os
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from email.header import Header
from typing import Any

from app.commands.settings_tables import NotifyTable
from engine.api.engine import Engine
from engine.core.journal import JournalError
from engine.core.secrets import plain_environment, without_secrets
from engine.core.text import clean_line
from engine.inquiry.inbox import Need, NeedKind

QUIET_S = 1.0
"""How often what waits may be looked at."""
SEND_S = 10.0
AT_ONCE = 5
"""Things that are told one by one; of more at once it is said how many there are."""
TEXT = 500
TOKEN = "PILOTHOUSE_NOTIFY_TOKEN"
"""The variable with the token of the service."""


class Notifier:
    """Tells each thing once that has waited for a while; `begin` it, and `close` it before the engine.

    Args:
        engine: the open engine.
        table: where and when, as the operator's own settings say.
        click: the address that a notification opens where the settings have none.
    """

    name = "notifier"

    def __init__(self, engine: Engine, table: NotifyTable, click: str = "") -> None:
        self._engine, self._table, self._click = engine, table, table.click or click
        self._since: dict[str, float] = {}
        self._told: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self.sent = self.failed = 0
        self.trouble = ""
        """Why the last one failed; empty once one has gone."""

    def begin(self) -> None:
        """Watch what waits, where the settings say where it is told."""
        if self._table.url or self._table.command:
            self._tasks = [
                asyncio.create_task(work, name="notifier") for work in (self._follow(), self._run())
            ]

    async def close(self) -> None:
        """End; what is being sent is cut off."""
        tasks = [*self._tasks, *self._sending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def status(self) -> dict[str, Any]:
        """How it is."""
        return {"sent": self.sent, "failed": self.failed, "trouble": self.trouble}

    async def _follow(self) -> None:
        async for _event in self._engine.events(await self._engine.head()):
            self._changed.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            with suppress(JournalError):
                self._look({need.key + need.event: need for need in await self._engine.inbox()}, loop.time())
            due = [at + self._table.after for key, at in self._since.items() if key not in self._told]
            await asyncio.sleep(QUIET_S)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(due, default=None)):
                    await self._changed.wait()

    def _look(self, needs: Mapping[str, Need], now: float) -> None:
        waiting = [key for key, need in needs.items() if need.kind is not NeedKind.RULE]
        self._since = {key: self._since.get(key, now) for key in waiting}
        self._told &= set(waiting)
        late = [
            key for key in waiting if key not in self._told and now - self._since[key] >= self._table.after
        ]
        self._told |= set(late)
        if len(late) > AT_ONCE:
            about = ", ".join(sorted({needs[key].agent for key in late}))
            urgent = any(needs[key].urgent for key in late)
            self._send(f"{len(late)} things need you", f"of {about}", urgent=urgent)
        else:
            for need in map(needs.__getitem__, late):
                self._send(f"{need.agent}: {need.kind.value}", need.what, urgent=need.urgent)

    def _send(self, title: str, text: str, *, urgent: bool) -> None:
        title, text = without_secrets(clean_line(title)), without_secrets(clean_line(text))
        given = (title, clean_line(text, limit=TEXT), "5" if urgent else "3")
        for wanted, work in ((self._table.url, self._post), (self._table.command, self._run_command)):
            if wanted:
                task = asyncio.create_task(self._counted(work(*given)), name="notification")
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)

    async def _counted(self, work: Any) -> None:
        try:
            async with asyncio.timeout(SEND_S):
                await work
        except (OSError, ValueError, TimeoutError) as error:
            self.failed += 1
            why = f"no answer within {SEND_S:g} s" if isinstance(error, TimeoutError) else str(error)
            self.trouble = f"a notification was not sent: {without_secrets(clean_line(why, limit=200))}"
        else:
            self.sent, self.trouble = self.sent + 1, ""

    async def _post(self, title: str, text: str, priority: str) -> None:
        encoded = title if title.isascii() else Header(title, "utf-8", maxlinelen=10_000).encode()
        headers = {"Title": encoded, "Priority": priority}
        headers |= {"Click": self._click} if self._click else {}
        if token := os.environ.get(TOKEN):
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self._table.url, text.encode(), headers, method="POST")
        await asyncio.to_thread(_sent, request)

    async def _run_command(self, title: str, text: str, priority: str) -> None:
        given = {"TITLE": title, "TEXT": text, "PRIORITY": priority, "CLICK": self._click}
        process = await asyncio.create_subprocess_exec(
            *self._table.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={
                **plain_environment(),
                **{f"PILOTHOUSE_NOTIFY_{name}": value for name, value in given.items()},
            },
        )
        try:
            await process.communicate(f"{title}\n{text}\n".encode())
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        if process.returncode:
            raise OSError(f"{self._table.command[0]} ended with code {process.returncode}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another address is not told what was meant for this one, and gets no token."""

    def redirect_request(self, *_given: Any) -> None:
        """None is followed."""


def _sent(request: urllib.request.Request) -> None:
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=SEND_S) as answer:
        answer.read(1024)
