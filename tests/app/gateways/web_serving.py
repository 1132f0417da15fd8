"""A workspace that is served to browsers by real programs, and a client that asks as a page does."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from app.gateways.engine_client import EngineClient
from app.gateways.web.tokens import Scope, TokenStore
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from tests.patience import PATIENCE_S

PILOT = "pilot-1"


class Served(NamedTuple):
    """A program that serves."""

    workspace: Path
    process: subprocess.Popen[str]
    url: str
    link: str
    """A token that can be used once; empty where none was printed."""

    @property
    def origin(self) -> str:
        """Its own, without the slash."""
        return self.url.rstrip("/")

    def token(self, name: str, scope: Scope = Scope.ANSWER, seconds: int = 0) -> str:
        """A new token's secret."""
        return TokenStore(self.workspace).add(name, scope, seconds=seconds)


@contextmanager
def serving(
    tmp_path: Path, settings: str = "", *words: str, environ: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """`pilothouse serve --web` on a free port, with the user's settings."""
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    for place in (home, workspace / "sandbox", tmp_path / "run"):
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "pilothouse.toml").write_text(settings)
    command = [sys.executable, "-m", "app.cli", "serve", "--workspace", str(workspace)]
    command += words or ("--web", "127.0.0.1:0")
    process = subprocess.Popen(
        command,
        cwd=Path(__file__).parents[3],
        text=True,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "serve.err").open("w"),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(environ or {})},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("serving"), (tmp_path / "serve.err").read_text()
        line = process.stdout.readline()
        url, _, link = line.split()[2].partition("login#")
        yield Served(workspace, process, url, link)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        errors = (tmp_path / "serve.err").read_text()
        assert (process.returncode, "Traceback" in errors) == (0, False), errors
    finally:
        process.kill()
        process.communicate()


class Page:
    """A page of a browser: cookies, and the headers that browsers send."""

    def __init__(self, session: aiohttp.ClientSession, served: Served) -> None:
        self.session, self._served = session, served

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        sent = {"Origin": self._served.origin, "Content-Type": "application/json", **headers}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(self._served.origin + path, data=data, headers=sent) as answer:
            return answer.status, await answer.json()

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Status and text."""
        async with self.session.get(
            self._served.origin + path, headers=headers, allow_redirects=False
        ) as answer:
            return answer.status, await answer.text()

    async def state(self) -> dict[str, Any]:
        """What the page shows."""
        status, text = await self.get("/state")
        assert status == 200, text
        shown: dict[str, Any] = json.loads(text)
        return shown

    async def need(self) -> dict[str, Any]:
        """The first that waits."""
        return (await until(self.state, lambda shown: bool(shown.get("needs"))))["needs"][0]

    async def answer(self, need: Mapping[str, Any], **more: Any) -> tuple[int, dict[str, Any]]:
        """Answer something that waits."""
        about = {name: need[name] for name in ("agent", "kind", "thing", "event")}
        return await self.post("/answer", {**about, **more})


@asynccontextmanager
async def page(served: Served, token: str = "") -> AsyncIterator[Page]:
    """A page that has logged in, where there is a token."""
    jar = aiohttp.CookieJar(unsafe=True)  # it would keep none of a bare address
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(PATIENCE_S)) as session:
        one = Page(session, served)
        if token:
            status, answer = await one.post("/login", {"token": token})
            assert status == 200, answer
        yield one


async def until(ask: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
    """What is answered once it is as it has to be."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds(answer := await ask()):
            await asyncio.sleep(0.05)
    return answer


async def commands(workspace: Path, *given: dict[str, Any]) -> None:
    """Have commands carried out by the engine that serves."""
    client = await EngineClient.open(workspace, "ann")
    assert client is not None
    try:
        for command in given:
            receipt = await client.ask("submit", command=command)
            assert receipt["ok"], receipt
    finally:
        await client.close()


async def asking(
    workspace: Path, agent: str = PILOT, goal: str = "create a Python project named 'demo'"
) -> None:
    """A new agent that asks before it changes something."""
    about = {"agent": agent}
    await commands(
        workspace,
        {"do": "create_agent", **about},
        {"do": "set_approvals", "policy": "ask-changes", **about},
        {"do": "adopt_goal", "text": goal, **about},
        {"do": "run", **about},
    )


async def journal(workspace: Path) -> list[Any]:
    """All events."""
    store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
    try:
        return [event async for event in store.events()]
    finally:
        await store.close()
