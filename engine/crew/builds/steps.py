"""A build that goes one phase at a time, as the checkpoints of the agent that builds are passed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping

from engine.building.findings import BuildResult, PhaseRecord

_QUOTED = re.compile(r"[`'\"“]([^`'\"”\n]{1,1000})[`'\"”]")
_PATH = re.compile(r"(?:^|(?<=\s))(~?\.{0,2}/\S+|[\w.-]+(?:/[\w.-]+)+/?|\S*SKILL\.md)", re.I)


def path_in(task: str) -> str:
    """The path that a task names; empty where it names none. In quotes it may have blanks."""
    for quoted in _QUOTED.finditer(task):
        if "/" in quoted[1] or quoted[1].lower().endswith("skill.md"):
            return quoted[1].strip()
    found = _PATH.search(task)
    return found[1].rstrip(".,;:!?)") if found else ""


class Steps:
    """A build under way.

    Args:
        begin: builds; it tells each phase, and waits before each for leave.
        decided: what the operator had decided when it began.
    """

    def __init__(
        self,
        begin: Callable[
            [Callable[[PhaseRecord], None], Callable[[int], Awaitable[None]]], Awaitable[BuildResult]
        ],
        decided: Mapping[str, str],
    ) -> None:
        self.decided = dict(decided)
        self._records: list[PhaseRecord] = []
        self._leave = 0
        self._news = asyncio.Event()
        self._task = asyncio.ensure_future(begin(self._told, self._pace))
        self._task.add_done_callback(lambda _task: self._tell())

    async def phase(self, number: int) -> PhaseRecord | BuildResult:
        """Let the build go on up to a phase; its record, or the result where there is no such phase.

        A cancellation of who waits leaves the build where it is.
        """
        self._leave = max(self._leave, number)
        self._tell()
        while len(self._records) < number and not self._task.done():
            await self._news.wait()
        last = number > len(self._records) or not self._records[number - 1].passed
        if last or number == _LAST:
            return await asyncio.shield(self._task)
        return self._records[number - 1]

    async def close(self) -> None:
        """End it where it has not ended; nothing of it runs afterwards."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _told(self, record: PhaseRecord) -> None:
        self._records.append(record)
        self._tell()

    async def _pace(self, number: int) -> None:
        while number > self._leave:
            await self._news.wait()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


_LAST = 7
"""The phase after which there is a result."""
