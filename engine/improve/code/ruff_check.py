"""Asks ruff what it finds in files, in a process that reads no configuration of the project."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ruff import find_ruff_bin

from engine.value import dataclass

RULES = ("E7", "E9", "F", "B", "C4", "PERF", "PLE", "S110", "S112", "RUF013", "C901")
"""Rules that point at defects, waste and what is hard to follow rather than at taste."""
_COMPLEXITY = "lint.mccabe.max-complexity=14"
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


async def static_findings(top: Path, paths: Sequence[str]) -> list[StaticFinding]:
    """What ruff finds in files, in order of path and line.

    Raises:
        StaticError: it is not installed, or gave no answer.
    """
    findings: list[StaticFinding] = []
    for start in range(0, len(paths), _AT_ONCE):
        some = [f"./{path}" for path in paths[start : start + _AT_ONCE]]
        output = await _ruff(top, ["--output-format", "json", "--", *some])
        findings += _read(top, output)
    return sorted(findings, key=lambda finding: (finding.path, finding.line, finding.code))


def _read(top: Path, output: bytes) -> list[StaticFinding]:
    try:
        rows = json.loads(output or b"[]")
        return [
            StaticFinding(
                os.path.relpath(row["filename"], top.resolve()).replace(os.sep, "/"),
                int((row.get("location") or {}).get("row", 0)),
                str(row["code"] or "invalid-syntax"),
                str(row["message"]),
            )
            for row in rows
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise StaticError(f"ruff's answer could not be read: {error}") from error


async def _ruff(top: Path, arguments: Sequence[str]) -> bytes:
    words = [find_ruff_bin(), "check", "--isolated", "--no-cache", "--quiet", "--exit-zero"]
    words += ["--select", ",".join(RULES)]
    words += ["--config", _COMPLEXITY, "--target-version", "py311", "--no-respect-gitignore", *arguments]
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=top,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"RAYON_NUM_THREADS": "2", "HOME": "/nonexistent"},
    )
    try:
        async with asyncio.timeout(_LIMIT_S):
            output, complaint = await process.communicate()
    except TimeoutError as error:
        raise StaticError(f"ruff took longer than {_LIMIT_S:g} s") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        raise StaticError(f"ruff failed: {complaint.decode(errors='replace').strip()[:300]}")
    return output
