"""`pilothouse sessions report`: a session or an agent as a file to be read, in Markdown or HTML.

Nothing that was recorded can act in it: Markdown escapes every sign that could mean something, HTML escapes
everything, loads nothing and has no script.
"""

from __future__ import annotations

import asyncio
import html
import re
from pathlib import Path
from typing import Any

from engine.domain.text import clean, clean_line
from engine.inquiry.reporting import Report, Reporter, Table
from engine.journal.store import JournalStore

Answer = tuple[int, dict[str, Any], str]
SUFFIXES = (".md", ".html")
NOTHING = "Nothing."
_SIGNS = re.compile(r"([!-/:-@\[-`{-~])")
_STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:110rem;padding:0 1rem;"
    "color:#1c2024;background:#fff}"
    "table{border-collapse:collapse;width:100%;margin:.5rem 0 2rem}"
    "th,td{border:1px solid #c8ccd0;padding:.3rem .5rem;text-align:left;vertical-align:top;"
    "white-space:pre-wrap;overflow-wrap:anywhere}"
    "th{background:#eef1f4}dt{font-weight:600;float:left;clear:left;width:9rem}dd{margin:0 0 .2rem 9rem}"
    "@media(prefers-color-scheme:dark){body{color:#e6e8ea;background:#16181b}"
    "th{background:#24282d}th,td{border-color:#3a4047}}"
)


async def write_report(
    store: JournalStore, title: str, first: int, last: int, stream: str | None, target: Path
) -> Answer:
    """Write the report to a new file.

    Args:
        store: the journal, open for reading.
        title: of what it is.
        first: the place from which on it is told.
        last: the last place that counts.
        stream: the agent whose events alone count, or None.
        target: the file; its ending says in what form.

    Raises:
        JournalError: the journal cannot be read.
    """
    if target.suffix not in SUFFIXES:
        return 2, {}, f"{target.name}: a report is written to a file that ends in {' or '.join(SUFFIXES)}"
    reporter = Reporter(first)
    async for event in store.events(0, stream=stream):
        if event.seq > last:
            break
        reporter.take(event)
    made = reporter.report(title)
    text = as_markdown(made) if target.suffix == ".md" else as_html(made)
    try:
        size = await asyncio.to_thread(_write, target, text)
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


# ------------------------------------------------------------------ Markdown


def as_markdown(report: Report) -> str:
    """The report as GitHub's Markdown; recorded text is plain text in it, whatever it holds."""
    parts = [f"# {_inert(report.title)}", ""]
    parts += [f"- {label}: {_inert(value)}" for label, value in report.facts]
    for table in report.tables:
        parts += ["", f"## {table.title}", "", *_markdown_table(table)]
    return "\n".join(parts) + "\n"


def _markdown_table(table: Table) -> list[str]:
    if not table.rows:
        return [NOTHING]
    head = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    return head + ["| " + " | ".join(map(_inert, row)) + " |" for row in table.rows]


def _inert(text: str) -> str:
    """The text on one line with every sign escaped that Markdown or HTML could take for its own."""
    lines = [clean_line(line, limit=len(line) + 1) for line in clean(text, limit=len(text) + 1).split("\n")]
    joined = " · ".join(line for line in lines if line)
    return _SIGNS.sub(r"\\\1", joined).replace("\\&", "&amp;").replace("\\<", "&lt;").replace("\\>", "&gt;")


# ------------------------------------------------------------------ HTML


def as_html(report: Report) -> str:
    """The report as one page that needs nothing else."""
    facts = "".join(f"<dt>{_safe(label)}</dt><dd>{_safe(value)}</dd>" for label, value in report.facts)
    tables = "\n".join(map(_html_table, report.tables))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{_safe(report.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{_safe(report.title)}</h1>\n<dl>{facts}</dl>\n{tables}\n</body>\n</html>\n"
    )


def _html_table(table: Table) -> str:
    title = f"<h2>{_safe(table.title)}</h2>"
    if not table.rows:
        return f"{title}\n<p>{NOTHING}</p>"
    head = "".join(f"<th>{_safe(name)}</th>" for name in table.columns)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return f"{title}\n<table>\n<tr>{head}</tr>\n{rows}\n</table>"


def _safe(text: str) -> str:
    return html.escape(clean(text, limit=len(text) + 1), quote=True)
