"""What reading files of Python can measure: sizes, complexity, imports, tests, ruff's findings.

Run as a program it reads paths from its standard input and writes one line of JSON for each, so that a large
tree is measured beside the loop and a file that brings a parser down brings nothing else down. Ruff runs in a
process that reads no configuration of the project. No code of the tree is run.
"""

from __future__ import annotations

import ast
import asyncio
import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from radon.complexity import cc_visit_ast
from radon.metrics import mi_compute
from radon.visitors import HalsteadVisitor
from ruff import find_ruff_bin

from engine.improve.code.slow_code import slow_places
from engine.improve.code.source import Source, read_source
from engine.value import dataclass


def measure_file(top: Path, path: str) -> dict[str, Any]:
    """The measures of one file as plain values; `problem` where it cannot be read."""
    try:
        text = read_source(top / path, beneath=top)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = Source(text)
    except SyntaxError as error:
        return {"path": path, "problem": f"syntax error in line {error.lineno}: {error.msg}"}
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return {"path": path, "problem": str(error) or type(error).__name__}
    try:
        blocks = [block for block in cc_visit_ast(source.tree) if block.letter != "C"]
        code, comments = _lines(text)
        complexity = sum(block.complexity for block in blocks) or 1
        halstead = HalsteadVisitor.from_ast(source.tree)
        upkeep = mi_compute(
            _volume(halstead), complexity, max(code, 1), 100 * comments / max(code + comments, 1)
        )
        slow = [[place.line, place.function, place.text] for place in slow_places(source)]
    except RecursionError:
        return {"path": path, "problem": "it is nested too deeply to be measured"}
    return {
        "path": path,
        "lines": text.count("\n") + (not text.endswith("\n")),
        "code": code,
        "complexity": complexity,
        "upkeep": round(upkeep, 1),
        "functions": [[block.fullname, block.lineno, block.complexity] for block in blocks],
        "classes": sum(isinstance(node, ast.ClassDef) for node in ast.walk(source.tree)),
        "imports": sorted(set(_imports(source.tree.body))),
        "tests": sum(name.rpartition(".")[2].startswith("test") for name, _ in source.functions),
        "slow": slow,
    }


def _volume(visitor: HalsteadVisitor) -> float:
    words = visitor.distinct_operators + visitor.distinct_operands
    return (visitor.operators + visitor.operands) * math.log2(words) if words else 0.0


def _lines(text: str) -> tuple[int, int]:
    """Lines with anything but a comment on them, and lines of comment."""
    stripped = [line.strip() for line in text.split("\n")]
    comments = sum(line.startswith("#") for line in stripped)
    return sum(bool(line) for line in stripped) - comments, comments


def _imports(body: list[ast.stmt]) -> Iterator[tuple[int, str, str]]:
    """What a module imports when it is imported: level, module and name; the name is empty for `import x`."""
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, ""
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.level, node.module or "", alias.name
        elif isinstance(node, ast.If):
            typing_only = "TYPE_CHECKING" in ast.unparse(node.test)
            yield from _imports(node.orelse if typing_only else [*node.body, *node.orelse])
        elif isinstance(node, (ast.Try, ast.With)):
            handlers = [statement for handler in getattr(node, "handlers", []) for statement in handler.body]
            yield from _imports([*node.body, *handlers])


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
    findings: list[StaticFinding] = []
    for start in range(0, len(paths), _AT_ONCE):
        some = [f"./{path}" for path in paths[start : start + _AT_ONCE]]
        output = await _ruff(top, ["--output-format", "json", "--", *some])
        findings += _read(top, output)
    return sorted(findings, key=lambda finding: (finding.path, finding.line, finding.code))


async def apply_safe_fixes(text: str, code: str) -> str | None:
    """The text with ruff's safe fixes of one rule; None when they change nothing."""
    arguments = ["--select", code, "--fix-only", "--stdin-filename", "module.py", "-"]
    fixed = (await _ruff(None, arguments, text.encode("utf-8", "surrogateescape"))).decode(
        "utf-8", "surrogateescape"
    )
    return fixed if fixed and fixed != text else None


def _read(top: Path, output: bytes) -> list[StaticFinding]:
    try:
        rows = json.loads(output or b"[]")
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


async def _ruff(top: Path | None, arguments: Sequence[str], stdin: bytes = b"") -> bytes:
    rules = [] if "--select" in arguments else ["--select", ",".join(RULES)]
    words = [find_ruff_bin(), "check", "--isolated", "--no-cache", "--quiet", "--exit-zero", *rules]
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
            output, complaint = await process.communicate(stdin)
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


def main(top: str) -> int:
    """Measure each path of the standard input."""
    sys.setrecursionlimit(3000)
    for line in sys.stdin:
        print(json.dumps(measure_file(Path(top), json.loads(line))), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
