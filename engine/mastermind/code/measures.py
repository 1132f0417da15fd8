"""What can be measured of files of Python by reading them: sizes, complexity, imports, tests.

Run as a program it reads paths from its standard input and writes one line of JSON for each, so that a large
tree is measured beside the loop and a file that brings a parser down brings nothing else down. No code of the
tree is run.
"""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from radon.complexity import cc_visit_ast
from radon.metrics import mi_compute
from radon.visitors import HalsteadVisitor

from engine.mastermind.code.slow import slow_places
from engine.mastermind.code.source import Source
from engine.mastermind.code.tree import read_source


def measure(top: Path, path: str) -> dict[str, Any]:
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
    import math

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
            handlers = [one for handler in getattr(node, "handlers", []) for one in handler.body]
            yield from _imports([*node.body, *handlers])


def main(top: str) -> int:
    """Measure each path of the standard input."""
    sys.setrecursionlimit(3000)
    for line in sys.stdin:
        print(json.dumps(measure(Path(top), json.loads(line))), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
