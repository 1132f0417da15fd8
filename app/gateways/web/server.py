"""The web server of a workspace, as a program: pages and what they ask, each request held to its token."""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import logging
import os
import signal
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import textual_serve
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from app.gateways.addresses import name_of
from app.gateways.engine_client import EngineLostError
from app.gateways.protocol import ProtocolError
from app.gateways.web.cockpit import Cockpits
from app.gateways.web.guard import BODY_BYTES, HEADERS, TOKEN, Guard, RefusedError, address_of, body_of
from app.gateways.web.inbox import OPERATOR, UNUSABLE, Inbox
from app.gateways.web.tokens import Kind, Scope, Token, TokenStore

IDLE_S = 8.0
"""How long a connection may take to its next request, and that to be there."""
BEAT_S = 15.0
PAGES_OPEN = 8
"""Pages of one token that are kept up."""
NOTE_S, NOTE_MOST_S, NOTES = 2.0, 60.0, 10
"""How often refusals are recorded, how seldom while they go on, and how many at a time."""
STATIC = Path(__file__).with_name("static")
PAGES = {"/": "inbox.html", "/inbox": "inbox.html", "/login": "login.html", "/cockpit": "cockpit.html"}
NEEDS: dict[str, Scope | None] = {
    **dict.fromkeys(("login", "login_page", "page", "static"), None),
    **dict.fromkeys(("answer", "stop"), Scope.ANSWER),
}
"""What other routes than those to look need, by name."""
FOR_COCKPIT = HEADERS["Content-Security-Policy"].replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)
"""The terminal in the page sets styles by itself."""


class WebServer:
    """The pages of one workspace.

    Args:
        workspace: its directory.
        hosts: names of this machine that are good.
        secure: whether it is HTTPS.
    """

    def __init__(self, workspace: Path, hosts: tuple[str, ...], secure: bool) -> None:
        self._inbox = Inbox(workspace)
        self._pages: Counter[str] = Counter()
        self.app = web.Application(client_max_size=BODY_BYTES)
        self.runner = web.AppRunner(
            self.app,
            keepalive_timeout=IDLE_S,
            handler_cancellation=True,
            access_log=None,
            logger=_logger(self._count_garbage),
            shutdown_timeout=1.0,
        )
        cookie, store = f"pilothouse_{name_of(workspace)[:12]}", TokenStore(workspace)
        self._guard = Guard(store, cookie, hosts, secure, NEEDS, self._connections)
        self._cockpits = Cockpits(workspace, self._guard)
        self.app.middlewares.append(self._guard.middleware)
        self.app.on_response_prepare.append(_add_headers)
        add = self.app.router
        for path in PAGES:
            add.add_get(path, self._page, name="login_page" if path == "/login" else None)
        add.add_static("/page", STATIC, name="page")
        add.add_static("/static", Path(textual_serve.__file__).parent / "static", name="static")
        add.add_get("/events", self._events)
        add.add_get("/state", self._state)
        add.add_get("/ws", self._cockpit)
        add.add_post("/login", self._login, name="login")
        add.add_post("/logout", self._logout)
        add.add_post("/answer", self._answer, name="answer")
        add.add_post("/stop", self._stop, name="stop")

    def _count_garbage(self, record: logging.LogRecord) -> bool:
        """Count what is no HTTP; everything else is a fault, and logged."""
        if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
            self._guard.refused["http.garbage"] += 1
            return False
        return True

    def _connections(self) -> int:
        return len(self.runner.server.connections) if self.runner.server is not None else 0

    async def run(self) -> None:
        """Keep up what is shown, and record what was refused, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._inbox.run())
            group.create_task(self._note_refusals())

    async def close(self) -> None:
        """End all that is open."""
        await self.runner.cleanup()
        await self._inbox.close()

    # -------------------------------------------------------------- pages

    async def _page(self, request: web.Request) -> web.StreamResponse:
        text = (STATIC / PAGES[request.path]).read_text("utf-8")
        scheme = "wss" if request.url.scheme == "https" else "ws"
        text = text.replace("{{socket}}", html.escape(f"{scheme}://{request.host}/ws"))
        return web.Response(text=text, content_type="text/html")

    def _seen(self, token: Token) -> str:
        you = {"name": token.name, "scope": token.scope, "answers": token.scope.covers(Scope.ANSWER)}
        return json.dumps({"you": you, **self._inbox.shown})

    async def _state(self, request: web.Request) -> web.StreamResponse:
        await self._inbox.want()
        return web.json_response(text=self._seen(request[TOKEN]))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """What is shown now, and then whenever it is other, until the token holds no more."""
        token, response = request[TOKEN], web.StreamResponse()
        if self._pages[token.digest] >= PAGES_OPEN:
            raise RefusedError(503, "pages", f"{PAGES_OPEN} pages of this token are open: close some")
        self._pages[token.digest] += 1
        revoked = asyncio.ensure_future(self._guard.revoked(token))
        changed: asyncio.Future[None] | None = None
        try:
            response.content_type = "text/event-stream"
            await response.prepare(request)
            while not revoked.done():
                await self._inbox.want()
                if changed is None:
                    changed = asyncio.ensure_future(self._inbox.next(self._inbox.version))
                    await response.write(f"data: {self._seen(token)}\n\n".encode())
                await asyncio.wait({changed, revoked}, timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED)
                if changed.done():
                    changed = None
                else:
                    await response.write(b": \n\n")
        finally:
            for future in filter(None, (changed, revoked)):
                future.cancel()
            self._pages[token.digest] -= 1
        return response

    # -------------------------------------------------------------- what pages ask

    async def _login(self, request: web.Request) -> web.StreamResponse:
        secret = str((await body_of(request)).get("token", ""))[:200]
        store = self._guard.store
        token: Token | None = store.find(secret)
        if token is not None and token.kind is Kind.LINK:
            swapped = store.swap(secret)
            token, secret = swapped if swapped is not None else (None, "")
        elif token is not None and token.kind is Kind.TOKEN:
            token, secret = store.browser(token)  # the browser has one of its own, which ends
        if token is None:
            self._guard.may_try(request)
        token = self._guard.checked(request, token)
        await self._record(token, request, "login")
        response = web.json_response({"name": token.name, "scope": token.scope})
        self._guard.remember(response, secret)
        return response

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        token = request[TOKEN]
        if token.kind is Kind.BROWSER:
            self._guard.store.revoke(token.name, token.digest)
        await self._record(token, request, "logout")
        response = web.json_response({})
        self._guard.forget(response)
        return response

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        return await self._done(request, "answer")

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        return await self._done(request, "stop")

    async def _done(self, request: web.Request, use: str) -> web.StreamResponse:
        token, given = request[TOKEN], await body_of(request)
        work = self._inbox.answer if use == "answer" else self._inbox.stop
        await self._record(token, request, use)
        try:
            message = await work(token, given)
        except EngineLostError as error:
            raise RefusedError(
                502, "engine.lost", f"{error}; the journal shows whether it was done"
            ) from None
        except ProtocolError as error:
            raise RefusedError(400, error.code, error.message) from None
        except UNUSABLE as error:
            raise RefusedError(502, "engine.lost", str(error)) from None
        return web.json_response({"message": message})

    async def _cockpit(self, request: web.Request) -> web.StreamResponse:
        await self._record(request[TOKEN], request, "cockpit")
        return await self._cockpits.serve(request, request[TOKEN])

    # -------------------------------------------------------------- the journal

    async def _record(self, token: Token, request: web.Request, use: str) -> None:
        """Record a use in the journal; one that cannot be recorded is none.

        Raises:
            RefusedError: it cannot be.
        """
        fields = {"token": token.name, "scope": token.scope.value, "address": address_of(request)}
        try:
            receipt = await self._inbox.submit(token.name, {"do": "record_access", "use": use, **fields})
        except UNUSABLE as error:
            raise RefusedError(502, "engine.lost", str(error)) from None
        if not receipt["ok"]:
            raise RefusedError(503, "journal", receipt["message"])

    async def _note_refusals(self) -> None:
        """Record refusals, and say to the engine's program how many there were."""
        told, wait = 0, NOTE_S
        while True:
            await asyncio.sleep(wait)
            wait = min(NOTE_MOST_S, wait * 1.5) if self._guard.unrecorded else NOTE_S
            if self._guard.refused.total() != told:
                told = self._guard.refused.total()
                _tell({"refused": dict(self._guard.refused)})
            waiting = list(self._guard.unrecorded.items())
            for refusal, count in waiting[:NOTES]:
                command = {"do": "record_access", "use": "refused", **refusal._asdict(), "count": count}
                with suppress(*UNUSABLE):
                    await self._inbox.submit(OPERATOR, command)
                    self._guard.recorded(refusal, count)


def _logger(passes: Callable[[logging.LogRecord], bool]) -> logging.Logger:
    logger = logging.getLogger("pilothouse.web")
    logger.addFilter(passes)
    return logger


def _tell(message: dict[str, Any]) -> None:
    """Tell the engine's program something."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if request.path.startswith("/static/"):
        response.headers["Cache-Control"] = "private, max-age=86400"
    if request.path == "/cockpit":
        response.headers["Content-Security-Policy"] = FOR_COCKPIT


# ------------------------------------------------------------------ the program


async def _serve(options: argparse.Namespace, context: ssl.SSLContext | None) -> None:
    server = WebServer(options.workspace, tuple(options.host), context is not None)
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running = asyncio.create_task(server.run(), name="web server")
    ends = {running, asyncio.create_task(reader.read()), asyncio.create_task(over.wait())}
    try:
        await server.runner.setup()
        listening = socket.socket(fileno=options.fd)
        await web.SockSite(server.runner, listening, ssl_context=context).start()
        _tell({"ready": os.getpid()})
        # The engine's program holds the other end of standard input, so its end is ours.
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        await server.close()


def main() -> int:
    """Serve until the engine's program ends, or tells this one to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--host", action="append", default=[])
    parser.add_argument("--tls", nargs=2, default=None)
    options = parser.parse_args()
    # What libraries print is no message to the engine's program.
    messages = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(messages, "w", encoding="utf-8")
    context = None
    if options.tls is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*options.tls)
    asyncio.run(_serve(options, context))
    return 0


if __name__ == "__main__":
    sys.exit(main())
