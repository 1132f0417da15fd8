"""`analyze_codebase` and `basegen` as jobs: a tree of the sandbox read and told; nothing in it is changed.

Source: mindX spec §1.2.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from engine.domain.mastermind import JobStatus
from engine.mastermind.code.analysis import AnalysisError, analyze
from engine.mastermind.code.box import BoxError, Workshop
from engine.mastermind.code.parts import Policy
from engine.mastermind.code.snapshot import snapshot_markdown
from engine.mastermind.parts import Asked, House, JobRefused, Outcome, Progress

SNAPSHOTS = "basegen"
"""Where Markdown snapshots lie, in the workspace's directory."""
_PATH = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|(\S+))\s*(.*)\Z""", re.S)


class CodeReading:
    """Does `analyze_codebase` and `basegen`.

    Args:
        house: whose sandbox is read.
        policy: what holds git.
    """

    def __init__(self, house: House, policy: Policy) -> None:
        self._house, self._policy = house, policy

    async def analyze(self, asked: Asked, progress: Progress) -> Outcome:
        """`analyze_codebase PATH [FOCUS]`: the path in quotes where it has blanks."""
        match = _PATH.match(asked.argument)
        if match is None:
            raise JobRefused(
                "analyze_codebase needs a path beneath the sandbox, such as: analyze_codebase sample"
            )
        path = next(part for part in match.groups()[:3] if part is not None)
        try:
            report = await analyze(
                self._house.root, path, match[4], workshop=await self._workshop(), tell=progress.tell
            )
        except AnalysisError as error:
            raise JobRefused(str(error)) from None
        return Outcome(JobStatus.DONE, report.as_text(), report.as_json())

    async def basegen(self, asked: Asked, progress: Progress) -> Outcome:
        """`basegen PATH`: the rest of the line is the path."""
        path = asked.argument.strip()
        if not path:
            raise JobRefused("basegen needs a path beneath the sandbox, such as: basegen sample")
        progress.tell(0, 1, f"reading {path}")
        try:
            text, report = await snapshot_markdown(self._house.root, path, workshop=await self._workshop())
        except AnalysisError as error:
            raise JobRefused(str(error)) from None
        name = re.sub(r"[^A-Za-z0-9]+", "-", report.path).strip("-") or "sandbox"
        file = self._house.workspace / SNAPSHOTS / f"{name}.md"
        await asyncio.to_thread(_write, file, text)
        output = f"{SNAPSHOTS}/{file.name}"
        said = f"{report.files_included} files of {path} are in {output}, {len(text):,} characters"
        return Outcome(JobStatus.DONE, said, {"output_file": output, **report.as_json()})

    async def _workshop(self) -> Workshop | None:
        """What holds git; None where the machine has no jail, and there is no history then."""
        try:
            return await asyncio.to_thread(Workshop.standing, self._policy())
        except BoxError:
            return None


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    file.parent.mkdir(exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w", encoding="utf-8") as out:
        out.write(text)
    fresh.replace(file)
