"""`pilothouse journal`: where the journal is kept, and moving it."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from app.cli.options import print_answer, print_error
from engine.core.journal import JournalError
from engine.core.ports import Ports


def run(options: argparse.Namespace) -> int:
    """Copy."""
    from engine.api.journal_copy import copy_to_file, copy_to_postgres  # late

    back, there = ("://" in text for text in (options.source, options.target))
    if back == there:
        return print_error("name a workspace's directory and a URL postgresql://USER@HOST/DATABASE")
    url, directory = (options.source, options.target) if back else (options.target, options.source)
    workspace, clock = Path(directory).absolute(), Ports().clock
    copying = copy_to_file(url, workspace, clock) if back else copy_to_postgres(workspace, url, clock)
    try:
        copied = asyncio.run(copying)
    except JournalError as error:
        return print_error(str(error))
    text = (
        f"{copied.place}: {copied.events:,} events ({copied.added:,} new) and {copied.blobs:,} blobs; "
        f"head {copied.head}"
    )
    print_answer(options, {"ok": True, **copied._asdict()}, text)
    return 0
