"""`pilothouse sessions report`: a session or an agent as a document in Markdown."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from app.cli.options import Answer
from engine.core.store.stored import StoredJournal
from engine.core.text import clean, clean_line
from engine.inquiry.report import Report, Reporter, Table

_SIGNS = re.compile(r"([!-/:-@\[-`{-~])")


async def write_report(
    store: StoredJournal, title: str, first: int, last: int, stream: str | None, target: Path
) -> Answer:
    """Write what is between two places of the journal, or an agent's part of it, to a new file."""
    if target.suffix != ".md":
        return 2, {}, f"{target.name}: a report is written to a file that ends in .md"
    reporter = Reporter(first)
    async for event in store.events(0, stream=stream):
        if event.seq > last:
            break
        reporter.take(event)
    made = reporter.report(title)
    try:
        size = await asyncio.to_thread(_write, target, as_markdown(made))
    except FileExistsError:
        return 2, {}, f"{target} exists already: choose another name"
    except OSError as error:
        return 2, {}, f"{target} cannot be written: {error.strerror}"
    rows = {table.title: len(table.rows) for table in made.tables}
    answer = {"ok": True, "file": str(target), "bytes": size, "facts": dict(made.facts), "rows": rows}
    return 0, answer, f"{target}: {size} bytes"


def _write(target: Path, text: str) -> int:
    with target.open("x", encoding="utf-8") as file:
        file.write(text)
    return target.stat().st_size


def as_markdown(report: Report) -> str:
    """The report as GitHub's Markdown; recorded text is plain text in it, whatever it holds."""
    parts = [f"# {_inert(report.title)}", ""]
    parts += [f"- {label}: {_inert(value)}" for label, value in report.facts]
    for table in report.tables:
        parts += ["", f"## {table.title}", "", *_markdown_table(table)]
    return "\n".join(parts) + "\n"


def _markdown_table(table: Table) -> list[str]:
    if not table.rows:
        return ["Nothing."]
    head = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    return head + ["| " + " | ".join(map(_inert, row)) + " |" for row in table.rows]


def _inert(text: str) -> str:
    """The text on one line with every sign escaped that Markdown or HTML could take for its own."""
    lines = [clean_line(line, limit=len(line) + 1) for line in clean(text, limit=len(text) + 1).split("\n")]
    joined = " · ".join(line for line in lines if line)
    return _SIGNS.sub(r"\\\1", joined).replace("\\&", "&amp;").replace("\\<", "&lt;").replace("\\>", "&gt;")
