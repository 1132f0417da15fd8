"""What a command line does in the engine that has the workspace open, and alone where there is none."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from app.cli.options import EX_SOFTWARE, Answer
from app.gateways.addresses import AddressError
from app.gateways.engine_client import EngineClient, EngineLostError
from app.gateways.protocol import ProtocolError

T = TypeVar("T")
UNUSABLE = (AddressError, ProtocolError, EngineLostError)
"""Why an engine that has the workspace open cannot be used; the message is fit for the operator."""
OPENING_S = 15.0
"""How long another program may take to open or close the workspace, so that it cannot be asked."""
LOOK_S = 0.1


async def in_engine(
    workspace: Path, beside: Callable[[EngineClient], Awaitable[T]], alone: Callable[[], Awaitable[T]]
) -> T:
    """Do something by the engine that answers for a workspace, or else alone.

    Raises:
        JournalError: it cannot be opened, as by a program that has it open and cannot be reached.
        AddressError, ProtocolError, EngineLostError: the engine cannot be used.
    """
    until = asyncio.get_running_loop().time() + OPENING_S
    while True:
        if (client := await EngineClient.open(workspace, holds=True)) is not None:
            try:
                return await beside(client)
            finally:
                await client.close()
        from engine.core.journal import JournalLocked  # late: it imports pydantic

        try:
            return await alone()
        except JournalLocked:
            # Whoever has it is just opening or closing it.
            if asyncio.get_running_loop().time() > until:
                raise
        await asyncio.sleep(LOOK_S)


async def answer_in_engine(
    workspace: Path,
    beside: Callable[[EngineClient], Awaitable[Answer]],
    alone: Callable[[], Awaitable[Answer]],
) -> Answer:
    """The same, with an engine that cannot be used as an answer."""
    try:
        return await in_engine(workspace, beside, alone)
    except UNUSABLE as error:
        if isinstance(error, EngineLostError) or (isinstance(error, ProtocolError) and error.code == "fault"):
            return EX_SOFTWARE, {"ok": False, "status": "FAULT", "message": str(error)}, str(error)
        return 2, {}, str(error)


async def until_signal(work: Awaitable[object]) -> int:
    """Await the work; 0 at its end, 130 or 143 where a signal came before.

    Raises:
        JournalError: it cannot be served.
    """
    from app.commands.watchdog import ending_on  # late: it imports pydantic

    came: list[int] = []
    task = asyncio.ensure_future(work)

    def end(number: int) -> None:
        came.append(number)
        task.cancel()

    try:
        with ending_on((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), end):
            await task
    except asyncio.CancelledError:
        if not came:
            raise
    except OSError as error:
        from engine.core.journal import JournalError  # late: it imports pydantic

        raise JournalError(f"it cannot be served: {error}") from error
    return 128 + came[0] if came else 0


AT_OPENING = {
    "--accept-tier": "pilothouse do 'accept_tier TIER' accepts it there",
    "--network": "pilothouse do 'network ports' grants it there",
}
"""What does the same as an option that counts when a workspace is opened."""


def refused_beside(client: EngineClient, option: str) -> Answer:
    """The answer to an option that counts only when a workspace is opened."""
    kind, pid = client.hello.get("kind"), client.hello.get("pid")
    end = "end it with pilothouse serve --stop" if kind == "serve" else "end that"
    how = AT_OPENING.get(option, f"{end}, then try again")
    return (
        2,
        {},
        f"{option} counts when a workspace is opened, and a {kind} (process {pid}) has it open: {how}",
    )
