"""Telling the operator's desktop: the one program that is started for the operator and not for an agent.

It lies here because nothing but this room starts programs. It is the desktop's own, takes no shell, and no
text of an agent's but as one argument behind `--`; nothing waits for it.
"""

from __future__ import annotations

import asyncio
import html
import shutil
from collections.abc import Awaitable, Callable, Mapping

DESKTOP_S = 5.0
"""How long the desktop's program may take."""


def desktop(environ: Mapping[str, str]) -> Callable[[str, str], Awaitable[None]] | None:
    """How the desktop is told; None where there is none, or no program for it."""
    session = environ.get("DBUS_SESSION_BUS_ADDRESS") or environ.get("XDG_RUNTIME_DIR")
    screen = environ.get("WAYLAND_DISPLAY") or environ.get("DISPLAY")
    program = shutil.which("notify-send", path=environ.get("PATH"))
    if not (session and screen and program):
        return None

    async def told(title: str, text: str) -> None:
        await _run(program, "--app-name=pilothouse", "--", title, html.escape(text, quote=False))

    return told


async def _run(*command: str) -> None:
    quiet = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=quiet, stdout=quiet, stderr=quiet)
    except OSError:
        return
    try:
        async with asyncio.timeout(DESKTOP_S):
            await process.wait()
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
