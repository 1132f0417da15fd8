"""How often files were changed, from a tree's git history, read in the jail; no hook and no filter is run."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.mastermind.code.box import Workshop
from engine.sandbox import Ended, Launch, Launcher
from engine.sandbox.environment import child_environment
from engine.sandbox.programs import SYSTEM_PATH

_COMMITS = 2000
_SAFE = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "safe.directory=*"),
    *("-c", "core.attributesFile=/dev/null", "-c", "log.showSignature=false", "--no-pager"),
    *("--no-replace-objects", "--no-optional-locks", "--literal-pathspecs"),
)
_OUTPUT = 32 * 1024 * 1024


class HistoryError(Exception):
    """Git could not be asked; the message says why in a few words."""


def repository(directory: Path, top: Path) -> Path | None:
    """The directory at or above one, and at or below `top`, that has a `.git` directory of its own."""
    here, top = directory.resolve(), top.resolve()
    while here == top or here.is_relative_to(top):
        status = (here / ".git").lstat() if (here / ".git").exists() else None
        if status is not None and stat.S_ISDIR(status.st_mode):
            return here
        if here == here.parent:
            return None
        here = here.parent
    return None


async def changes(workshop: Workshop, place: Path, directory: Path) -> Counter[str]:
    """Commits that changed each file, by path from `directory`; the newest 2000 commits count.

    Args:
        workshop: what holds git.
        place: the directory that has `.git`.
        directory: at or beneath it; only files below it count.

    Raises:
        HistoryError: there is no git, or it could not read the history.
    """
    words = ["log", f"-n{_COMMITS}", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", "-z"]
    below = directory.relative_to(place).as_posix()
    said = await git(workshop, place, [*words, "--format=", "--", below])
    found: Counter[str] = Counter()
    for row in said.split("\0"):
        name = row.strip("\n").split("\t", 2)[-1]
        if name:
            found[name if below == "." else name.removeprefix(f"{below}/")] += 1
    return found


async def git(workshop: Workshop, place: Path, words: Sequence[str]) -> str:
    """What git says when it is asked in a directory, in the jail.

    Raises:
        HistoryError: see `changes`.
    """
    program = shutil.which("git", path=os.pathsep.join(SYSTEM_PATH))
    if program is None:
        raise HistoryError("git is not installed")
    policy = replace(workshop.policy, output_head_bytes=_OUTPUT, output_bytes=2 * _OUTPUT)
    env = child_environment(place, policy, None) | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    try:
        cwd = await asyncio.to_thread(os.open, place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise HistoryError(str(error)) from error
    try:
        done = await Launcher(place, policy).run(
            Launch(program, (program, *_SAFE, *words), env),
            cwd,
            jail=workshop.jail,
            limit_s=30.0,
            output=lambda stream, text: None,
        )
    finally:
        os.close(cwd)
    if done.ended is not Ended.EXIT or done.return_code != 0:
        said = done.stderr.strip().rpartition("\n")[2]
        raise HistoryError((done.problem or said or f"git ended with {done.return_code}")[:200])
    return done.stdout
