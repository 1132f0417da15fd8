"""Finds and reads the files of skills in the folders of a workspace."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from engine.crew.builder.registration import SKILL, BuildPaths, read_build
from engine.crew.ontology.spec import TEXT_LIMIT, SkillFiles
from engine.value import replace

_NAMES = ("SKILL.md", "skill.md", "agent.yaml")
"""What the agent was made of; it is shown as its instructions."""


class SkillFileError(Exception):
    """A file of a skill cannot be shown as text; the message says why."""


def skill_folder(places: BuildPaths, agent_id: str, version: str) -> Path | None:
    """Where the files of a version lie; None where it has none beside its SKILL.md. Blocking."""
    folder = places.agent(agent_id)
    build = read_build(folder) if places.names(agent_id) else None
    there = build is not None and build.version == version and any(map(_file, build.files))
    return folder / SKILL if there else None


def read_files(folder: Path, opened: Iterable[str] = ()) -> SkillFiles:
    """The files of a skill's folder with what stands in some of them; blocking.

    Args:
        folder: the `skill` directory of an agent.
        opened: paths of those that are read; one that is no text any more is left out.
    """
    build = read_build(folder.parent)
    paths = sorted(filter(None, map(_file, build.files if build is not None else ())))
    sizes = {path: size for path in paths if (size := _size(folder / path)) is not None}
    texts = {}
    for path in opened:
        if path in sizes:
            try:
                texts[path] = read_text(folder, path)
            except SkillFileError:
                continue
    files = SkillFiles(str(folder), sizes)
    return replace(files, texts={path: files.resolved(text) for path, text in texts.items()})


def read_text(folder: Path, path: str) -> str:
    """What stands in a file, cut where it is very long; blocking.

    Args:
        folder: the `skill` directory of an agent.
        path: one of `SkillFiles.sizes`.

    Raises:
        SkillFileError: it is no text, or cannot be read.
    """
    try:
        descriptor = os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - of an open descriptor
            data = file.read(4 * TEXT_LIMIT + 1)
    except OSError as error:
        raise SkillFileError(f"{path} cannot be read: {error.strerror}") from error
    if b"\0" in data:
        raise SkillFileError(f"{path} is no text")
    whole = len(data) <= 4 * TEXT_LIMIT
    try:
        text = data.decode("utf-8", errors="strict" if whole else "ignore")
    except UnicodeDecodeError as error:
        raise SkillFileError(f"{path} is no text") from error
    if len(text) <= TEXT_LIMIT and whole:
        return text
    return f"{text[:TEXT_LIMIT]}\n[cut here: the file is longer than {TEXT_LIMIT:,} characters]"


def _file(path: str) -> str:
    """The path in the skill's folder of a file of the agent's, if it lies beside its SKILL.md."""
    inside = path.removeprefix(f"{SKILL}/")
    return "" if inside == path or inside in _NAMES else inside


def _size(path: Path) -> int | None:
    try:
        return path.lstat().st_size
    except OSError:
        return None
