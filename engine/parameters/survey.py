"""Looking at the workspace for what arguments may mean; blocking."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.action import ErrorCode
from engine.domain.parameters import Entry, Survey
from engine.parameters.likeness import handles
from engine.parameters.paths import Enquiry, PathQuestion, placeholder
from engine.sandbox.files import SandboxFiles
from engine.sandbox.names import shown
from engine.sandbox.paths import PathError
from engine.sandbox.search import walk

SEARCHED = 20_000
"""Files and directories looked at for one call."""
KEPT = 100
"""Entries of a like name that are kept; with more of them nothing is certain."""


def survey(files: SandboxFiles, cwd: str, enquiry: Enquiry) -> Survey:
    """Which of the paths are not there, and what is there under a like name.

    The tree is searched only when something is not there. What cannot be looked at counts as being there:
    the tool itself says what is wrong with it.
    """
    missing = tuple(each.argument for each in enquiry.paths if not _is_there(files, cwd, each))
    if not missing and not enquiry.for_missing:
        return Survey()
    wanted = enquiry.handles()
    found: list[Entry] = []
    for count, (path, is_directory) in enumerate(_below(files)):
        if count == SEARCHED or len(found) == KEPT:
            return Survey(missing, tuple(found), whole=False)
        entry = Entry(shown(path), is_directory)
        if not wanted.isdisjoint(handles(entry.path)):
            found.append(entry)
    return Survey(missing, tuple(found))


def _is_there(files: SandboxFiles, cwd: str, question: PathQuestion) -> bool:
    try:
        path = files.relative(question.path, cwd)
        if not question.exists:
            path = path.rpartition("/")[0] or "."
        return path == "." or files.entry(path) is not None
    except PathError as refused:
        return not (refused.code is ErrorCode.OUTSIDE_ROOT and placeholder(question.path))


def _below(files: SandboxFiles) -> Iterator[tuple[str, bool]]:
    try:
        yield from walk(files)
    except PathError:
        return  # the root itself cannot be read, which the tool will say
