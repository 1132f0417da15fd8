"""Opening the files that came with an agent's skill, when its instructions point to them."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from pathlib import Path

from engine.agents.skill_files import OPENED_MOST
from engine.building.skill_files import SkillFileError, read_text
from engine.crew.tool.work import Work, done, refused
from engine.domain.action import ToolResult
from engine.domain.running import OPENED
from engine.domain.text import clean_line


async def read_skill(work: Work) -> ToolResult:
    """Open a file: from now on it stands in what the run's model is told."""
    opened = tuple(work.beliefs.get(OPENED) or ())
    files = await work.desk.skill_of(work.run)
    if files is None:
        return refused(f"no files came with {work.handoff.spec.name}")
    path = str(work.args["path"]).strip().removeprefix("./")
    if path not in files.sizes:
        near = get_close_matches(path, files.sizes, n=3, cutoff=0.4)
        there = f"near it: {', '.join(near)}" if near else f"there are {len(files.sizes)} others"
        return refused(f"there is no file {clean_line(path, limit=120)!r}; {there}")
    if path in opened:
        return done(f"{path} is open already")
    if len(opened) >= OPENED_MOST:
        return refused(f"{OPENED_MOST} files are open, which is the most: {', '.join(opened)}")
    try:
        text = await asyncio.to_thread(read_text, Path(files.folder), path)
    except SkillFileError as error:
        return refused(f"{error} ({files.sizes[path]:,} bytes); programs that you run can read it there")
    said = f"{path}, {len(text):,} characters, is open"
    return done(said, beliefs={OPENED: [*opened, path]})
