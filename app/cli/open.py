"""`pilothouse open`: a session that came as one file, looked at here or made a workspace."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from app.cli.archives import ExportError, unpack_session
from app.cli.options import Answer, accepted_tier, print_answer, print_error, run_answer
from app.cli.sessions import query_sessions
from app.commands.settings import Settings


def run(options: argparse.Namespace) -> int:
    """Show the session in the cockpit, or what it has where there is no terminal; or keep it."""
    if options.into is not None:
        return run_answer(options, asyncio.to_thread(keep, options.file, options.into))
    terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    with tempfile.TemporaryDirectory(prefix="pilothouse-") as place:
        room = Path(place) / options.file.stem
        room.mkdir()
        try:
            unpack_session(options.file, room)
        except ExportError as error:
            return print_error(str(error))
        if not terminal or os.environ.get("TERM") == "dumb" or getattr(options, "json", False):
            return run_answer(options, query_sessions(room, "replay", ""))
        from app.cockpit.app import run_cockpit

        settings = replace(Settings.load(room, theme=options.theme), looks_only=True, model=None)
        code = run_cockpit(room, accept=accepted_tier(options), settings=settings)
        print_answer(options, {}, f"{options.file} was looked at; nothing was kept of it here")
        return code


def keep(source: Path, target: Path) -> Answer:
    """Make a workspace of a session, in a directory that is new or empty."""
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        return 2, {}, f"{target} is there already: give a new directory"
    try:
        room = Path(tempfile.mkdtemp(dir=target.absolute().parent, prefix=".opening-"))
    except OSError as error:
        return 2, {}, f"{target} cannot be made: {error.strerror}"
    try:
        check = unpack_session(source, room)
        room.chmod(0o755)
        room.rename(target)
    except (ExportError, OSError) as error:
        shutil.rmtree(room, ignore_errors=True)
        return 2, {}, str(error)
    answer = {"ok": True, "workspace": str(target), "events": check.events, "head": check.head}
    words = (
        f"{target}: {check.events} events, sound, head {check.head}; what was granted in it does not count"
    )
    return 0, answer, words
