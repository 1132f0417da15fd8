"""Static findings and safe fixes by ruff, in a process that reads no configuration of the project."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

RULES = ("E7", "E9", "F", "B", "C4", "PERF", "PLE", "S110", "S112", "RUF013")
"""Rules that point at defects and waste rather than at taste."""
_AT_ONCE = 400
_LIMIT_S = 60.0


class StaticError(Exception):
    """Ruff could not be asked; the message says why."""


@dataclass(frozen=True, slots=True)
class StaticFinding:
    """One of ruff's findings."""

    path: str
    line: int
    code: str
    message: str
    fixable: bool
    """Whether ruff has a fix that keeps what the code does."""


async def static_findings(top: Path, paths: Sequence[str]) -> list[StaticFinding]:
    """What ruff finds in files, in order of path and line.

    Raises:
        StaticError: it is not installed, or gave no answer.
    """
    found: list[StaticFinding] = []
    for start in range(0, len(paths), _AT_ONCE):
        some = [f"./{path}" for path in paths[start : start + _AT_ONCE]]
        said = await _ruff(top, ["--output-format", "json", "--", *some])
        found += _read(top, said)
    return sorted(found, key=lambda one: (one.path, one.line, one.code))


async def fixed(text: str, code: str) -> str | None:
    """The text with ruff's safe fixes of one rule; None when they change nothing."""
    arguments = ["--select", code, "--fix-only", "--stdin-filename", "module.py", "-"]
    said = (await _ruff(None, arguments, text.encode("utf-8", "surrogateescape"))).decode(
        "utf-8", "surrogateescape"
    )
    return said if said and said != text else None


def by_rule(found: Sequence[StaticFinding]) -> Counter[str]:
    """How many there are of each rule."""
    return Counter(one.code for one in found)


def _read(top: Path, said: bytes) -> list[StaticFinding]:
    try:
        rows = json.loads(said or b"[]")
        return [
            StaticFinding(
                os.path.relpath(row["filename"], top.resolve()).replace(os.sep, "/"),
                int((row.get("location") or {}).get("row", 0)),
                str(row["code"] or "invalid-syntax"),
                str(row["message"]),
                ((row.get("fix") or {}).get("applicability")) == "safe",
            )
            for row in rows
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise StaticError(f"ruff's answer could not be read: {error}") from error


def _program() -> str:
    beside = Path(sys.executable).with_name("ruff")
    if beside.is_file():
        return str(beside)
    try:
        from ruff import find_ruff_bin
    except ImportError as error:
        raise StaticError("ruff is not installed; `pip install ruff` brings it") from error
    return str(find_ruff_bin())


async def _ruff(top: Path | None, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
    rules = [] if "--select" in arguments else ["--select", ",".join(RULES)]
    words = [_program(), "check", "--isolated", "--no-cache", "--quiet", "--exit-zero", *rules]
    words += ["--target-version", "py311", "--no-respect-gitignore", *arguments]
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=top,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"RAYON_NUM_THREADS": "2", "HOME": "/nonexistent"},
    )
    try:
        async with asyncio.timeout(_LIMIT_S):
            said, complaint = await process.communicate(stdin)
    except TimeoutError as error:
        raise StaticError(f"ruff took longer than {_LIMIT_S:g} s") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        raise StaticError(f"ruff failed: {complaint.decode(errors='replace').strip()[:300]}")
    return said
