"""The cockpit in a browser: a program of its own for each page, served by textual-serve."""

from __future__ import annotations

import asyncio
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import WSMessage, WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from app.gateways.web.guard import Guard, RefusedError
from app.gateways.web.tokens import Scope, Token
from engine.core.text import StrictJsonError, read_json

COCKPITS = 8
MESSAGE_BYTES = 256 * 1024
END_S = 3.0
"""How long a cockpit may take to end."""
SMALLEST, LARGEST = 10, 1_000


class BrowserCockpit(AppService):
    """A cockpit attached to the workspace's engine, in the name of a token."""

    def __init__(self, workspace: Path, token: Token, socket: web.WebSocketResponse) -> None:
        words = [sys.executable, "-P", "-m", "app.cli", "attach", "--workspace", str(workspace)]
        words += [] if token.scope is Scope.CONTROL else ["--read-only"]
        self._name, self._socket = token.name, socket
        super().__init__(
            f"exec {shlex.join(words)}",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=self._close,
            download_manager=DownloadManager(),
        )

    async def _close(self) -> None:
        await self._socket.close()

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        """The environment of textual-serve, with the token's name as that of the operator."""
        names = dict.fromkeys(("PILOTHOUSE_OPERATOR", "LOGNAME", "USER", "LNAME", "USERNAME"), self._name)
        return {**super()._build_environment(width, height), **names}

    async def end(self) -> None:
        """End it, in good order where it can."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self.stop()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def take(self, message: WSMessage) -> list[Any] | None:
        """Hand over what a browser sends; what is to be sent back."""
        try:
            kind, value, *_ = [*read_json(message.data), None] if message.type is WSMsgType.TEXT else [""] * 2
        except (StrictJsonError, TypeError, ValueError):
            raise RefusedError(400, "cockpit.message", "this is no message of the page") from None
        if kind == "stdin" and isinstance(value, str):
            await self.send_bytes(value.encode(errors="replace"))
        elif kind == "resize" and isinstance(value, dict):
            await self.set_terminal_size(size_of(value.get("width"), 80), size_of(value.get("height"), 24))
        elif kind == "ping":
            return ["pong", value]
        elif kind in ("blur", "focus"):
            await (self.blur() if kind == "blur" else self.focus())
        else:
            raise RefusedError(400, "cockpit.message", "this is no message of the page")
        return None


def size_of(given: object, usual: int) -> int:
    """Cells in a direction, within reason."""
    try:
        cells = int(str(given)[:6])
    except ValueError:
        return usual
    return min(LARGEST, max(SMALLEST, cells))


class Cockpits:
    """All cockpits in browsers.

    Args:
        workspace: its directory.
        guard: knows which tokens hold, and counts refusals.
    """

    def __init__(self, workspace: Path, guard: Guard) -> None:
        self._workspace, self._guard = workspace, guard
        self.count = 0

    async def serve(self, request: web.Request, token: Token) -> web.WebSocketResponse:
        """Serve a page until it is closed, its token revoked or its cockpit over.

        Raises:
            RefusedError: there are too many.
        """
        if self.count >= COCKPITS:
            raise RefusedError(
                503, "cockpits", f"there are {COCKPITS} cockpits in browsers already: close some"
            )
        socket = web.WebSocketResponse(heartbeat=15, max_msg_size=MESSAGE_BYTES)
        cockpit = BrowserCockpit(self._workspace, token, socket)
        self.count += 1
        try:
            await socket.prepare(request)
            query = request.query
            await cockpit.start(size_of(query.get("width"), 80), size_of(query.get("height"), 24))
            serving = asyncio.create_task(self._carry(socket, cockpit), name="cockpit")
            holding = asyncio.ensure_future(self._guard.revoked(token))
            try:
                await asyncio.wait({serving, holding}, return_when=asyncio.FIRST_COMPLETED)
                if serving.done() and isinstance(error := serving.exception(), RefusedError):
                    self._guard.note(error, request)
            finally:
                for task in (serving, holding):
                    task.cancel()
                await asyncio.gather(serving, holding, return_exceptions=True)
        finally:
            try:
                await asyncio.shield(cockpit.end())
            finally:
                self.count -= 1
            await socket.close()
        return socket

    async def _carry(self, socket: web.WebSocketResponse, cockpit: BrowserCockpit) -> None:
        async for message in socket:
            if (answer := await cockpit.take(message)) is not None:
                await socket.send_json(answer)
