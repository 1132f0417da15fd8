"""Unified differences, read and applied strictly, to compare what is claimed with what is."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_NO_NEWLINE = "\\"


class PatchError(ValueError):
    """A difference cannot be read, or does not fit; the message says where."""


def patched(difference: str, texts: Mapping[str, str | None]) -> dict[str, str | None]:
    """What files become by a unified difference; files that it does not name stay as they are.

    Line numbers are a hint only, as models count badly; the lines themselves have to be there.

    Args:
        difference: with `---` and `+++` lines for each file.
        texts: contents before by path; None for a file that is not there.

    Raises:
        PatchError: it names another file, or lines that are not there.
    """
    result = dict(texts)
    path, lines, at, new = "", [""], 0, [""]
    rows = difference.splitlines()
    number = 0
    while number < len(rows):
        row = rows[number]
        if row.startswith("--- ") and number + 1 < len(rows) and rows[number + 1].startswith("+++ "):
            if path:
                result[path] = "\n".join(new + lines[at:])
            path, removed = _path(row[4:], rows[number + 1][4:], texts)
            lines, at, new = (result[path] or "").split("\n"), 0, []
            number += 2
            if removed:
                result[path], path = None, ""
                while number < len(rows) and not rows[number].startswith("--- "):
                    number += 1
            continue
        if (match := _HUNK.match(row)) and path:
            number += 1
            old, put, number = _hunk(rows, number)
            start = _place(old, lines, at, int(match[1]) - 1, path)
            new += lines[at:start] + put
            at = start + len(old)
            continue
        number += 1
    if path:
        result[path] = "\n".join(new + lines[at:])
    return result


def _hunk(rows: list[str], number: int) -> tuple[list[str], list[str], int]:
    """The lines that a hunk takes away and keeps, those that stand there then, and the row behind it."""
    old: list[str] = []
    put: list[str] = []
    while number < len(rows):
        row = rows[number]
        if row.startswith(("@@ ", "diff ", "Index ")) or (
            row.startswith("--- ") and number + 1 < len(rows) and rows[number + 1].startswith("+++ ")
        ):
            break
        if row.startswith("-"):
            old.append(row[1:])
        elif row.startswith("+"):
            put.append(row[1:])
        elif not row.startswith(_NO_NEWLINE):
            old.append(row[1:])
            put.append(row[1:])
        number += 1
    return old, put, number


def _place(old: list[str], lines: list[str], at: int, hint: int, path: str) -> int:
    """Where the lines stand: at the hint, else the first place behind the hunk before."""
    if not old:  # lines are put in behind the one that is named
        return max(at, min(hint + 1, len(lines)))
    places: list[int] = [hint, *range(at, len(lines) - len(old) + 1)]
    for start in places:
        if start >= at and lines[start : start + len(old)] == old:
            return start
    raise PatchError(f"{path} has no such lines: {' / '.join(old)[:120]!r}")


def _path(old: str, new: str, texts: Mapping[str, str | None]) -> tuple[str, bool]:
    """The file that a pair of `---` and `+++` lines means, and whether it is removed."""
    names = [name.split("\t")[0].strip() for name in (old, new)]
    removed = names[1] == "/dev/null"
    name = names[0] if removed else names[1]
    for one in (name, name.partition("/")[2]):
        fitting = [path for path in texts if path == one or (one and path.endswith(f"/{one}"))]
        if len(fitting) == 1:
            return fitting[0], removed
    raise PatchError(f"it names {name!r}, which is not changed")
