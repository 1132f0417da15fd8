"""`pilothouse backup`: journal, blobs and snapshots as one file, and a workspace from it."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from app.cli.archives import ExportError, restore_backup, write_backup
from app.cli.options import Answer, run_answer, workspace_of
from app.commands.settings import Settings


def run(options: argparse.Namespace) -> int:
    """Write a backup, or make a workspace of one."""
    return run_answer(options, back_up(workspace_of(options), options.file, restore=options.restore))


async def back_up(workspace: Path, file: Path, *, restore: bool) -> Answer:
    """Write a backup of a workspace, also while agents run, or make a workspace of one.

    Raises:
        JournalError: the journal in the backup cannot be read.
    """
    trust = (await asyncio.to_thread(Settings.load, workspace)).trust
    try:
        if restore:
            check = await restore_backup(file, workspace, trust)
            words = f"{workspace}: {check.events} events, sound, head {check.head}"
            return 0, {"ok": True, "events": check.events, "head": check.head}, words
        check, size = await asyncio.to_thread(write_backup, workspace, file, trust)
    except ExportError as error:
        return 2, {}, str(error)
    answer = {"ok": True, "file": str(file), "bytes": size, "events": check.events, "head": check.head}
    return 0, answer, f"{file}: {size} bytes, {check.events} events, head {check.head}"
