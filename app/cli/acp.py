"""`pilothouse acp`: agents for editors and terminals that speak the Agent Client Protocol."""

from __future__ import annotations

import argparse
import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.beside import UNUSABLE, in_engine, refused_beside, until_signal
from app.cli.options import accepted_tier, imported, print_error, workspace_of
from app.commands.user import operator_name
from app.gateways.engine_client import EngineClient
from engine.core.journal import JournalError

if TYPE_CHECKING:
    from app.gateways.acp.session import OpenWorkspace


class Workspaces:
    """The workspaces that sessions are in, each open for as long as its engine lives and this program runs.

    Args:
        options: as they were typed.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._open: dict[Path, tuple[asyncio.Task[None], asyncio.Future[OpenWorkspace]]] = {}
        self._closing = asyncio.Event()

    async def open(self, path: Path) -> OpenWorkspace:
        """A workspace by the engine that has it open, or else by one of ours.

        Raises:
            JournalError: it cannot be opened.
            AddressError, ProtocolError, EngineLostError: its engine cannot be used.
        """
        if path not in self._open or self._open[path][0].done():
            ready: asyncio.Future[OpenWorkspace] = asyncio.get_running_loop().create_future()
            work = in_engine(path, partial(self._beside, path, ready), partial(self._alone, path, ready))
            self._open[path] = (asyncio.create_task(work, name=f"workspace {path}"), ready)
        task, ready = self._open[path]
        opening: set[asyncio.Future[Any]] = {task, ready}
        await asyncio.wait(opening, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            task.result()
        return ready.result()

    async def close(self) -> None:
        """Close them all."""
        self._closing.set()
        await asyncio.gather(*(task for task, _ in self._open.values()), return_exceptions=True)

    async def _beside(self, path: Path, ready: asyncio.Future[OpenWorkspace], client: EngineClient) -> None:
        if accepted_tier(self._options) is not None:
            raise JournalError(refused_beside(client, "--accept-tier")[2])

        async def line(text: str, agent: str) -> Any:
            given = await client.ask_once("line", line=text, agent=agent, cwd=str(path))
            return given["code"], given["answer"], given["text"]

        engine = await imported("app.gateways.remote_engine").RemoteEngine.of(client)
        ready.set_result(_open_workspace()(path, engine, line))
        ends = [asyncio.create_task(client.gone()), asyncio.create_task(self._closing.wait())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()

    async def _alone(self, path: Path, ready: asyncio.Future[OpenWorkspace]) -> None:
        headless, runner = imported("app.commands.headless"), imported("app.commands.command_runner")
        served = partial(imported("app.gateways.socket_server").served, kind="acp")
        config = headless.load_and_say(path).engine_config(accept=accepted_tier(self._options))
        async with headless.open_engine(path, config, served) as engine:

            async def line(text: str, agent: str) -> Any:
                more = {"operator": operator_name(), "here": path, "lasts": True}
                return await runner.run_line(engine, text, agent=agent, dry=False, quiet=True, **more)

            ready.set_result(_open_workspace()(path, engine, line))
            await self._closing.wait()


def _open_workspace() -> type[OpenWorkspace]:
    kind: type[OpenWorkspace] = imported("app.gateways.acp.session").OpenWorkspace
    return kind


async def _serve(options: argparse.Namespace) -> int:
    workspace = workspace_of(options) if getattr(options, "workspace", None) is not None else None
    workspaces = Workspaces(options)
    try:
        serve = imported("app.gateways.acp.agent").serve
        return await until_signal(serve(workspaces.open, workspace, operator_name()))
    finally:
        await workspaces.close()


# ------------------------------------------------------------------ the subcommand


def run(options: argparse.Namespace) -> int:
    """Serve until the client leaves or a signal comes."""
    try:
        return asyncio.run(_serve(options))
    except (JournalError, *UNUSABLE) as error:
        return print_error(str(error))
