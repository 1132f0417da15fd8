"""Terminals that a program had Pilothouse open: background jobs, of which it may ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.sandbox.jobs import BackgroundJob

LINES = 2_000
"""Lines of a terminal's output that the program gets, the newest."""


async def read_terminal(jobs: dict[str, BackgroundJob], method: str, given: Mapping[str, Any]) -> Any:
    """Answer what concerns a terminal of the session's own."""
    from acp.exceptions import RequestError

    job = jobs.get(str(given.get("terminalId")))
    if job is None:
        return RequestError(-32602, "there is no such terminal")
    if method in ("terminal/kill", "terminal/release"):
        job.stop()
        if method == "terminal/release":
            del jobs[job.id]
        return {}
    if method == "terminal/wait_for_exit":
        await job.over.wait()
    code = job.result.return_code if job.result is not None else None
    ended: dict[str, Any] = {"exitCode": code if code is not None and code >= 0 else None}
    if code is None or code < 0:
        ended["signal"] = job.told[:100] or None
    if method == "terminal/wait_for_exit":
        return ended
    over = {"exitStatus": ended} if job.over.is_set() else {}
    return {"output": "\n".join(job.newest(LINES)), "truncated": False, **over}
