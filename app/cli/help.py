"""`pilothouse help [TOPIC]`: the user's guide on the command line.

On a terminal a page is drawn with headings, tables and colours; everywhere else it is printed as the Markdown
that it is, so that it can be searched and piped.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any, TextIO

from app.cli.options import flag, print_answer, print_error
from app.guide import UnknownTopicError, page, summary, topics

WIDEST = 100
"""Columns of a drawn page; longer lines are hard to read."""
LINK = re.compile(r"\[([^\]]+)\]\(([a-z-]+)\.md\)")
"""A link to another page; on a terminal it is shown as the command that opens it."""


def contents() -> tuple[dict[str, Any], str]:
    """The list of topics, as data and as text."""
    titles = topics()
    answer = {
        "topics": [{"topic": topic, "title": titles[topic], "summary": summary(topic)} for topic in titles]
    }
    width = max(map(len, titles))
    lines = [
        "The guide. Read a page with: pilothouse help TOPIC",
        "",
        *(f"  {topic:<{width}}  {title}" for topic, title in titles.items()),
        "",
        "Options of a command: pilothouse COMMAND --help. Keys and commands of the cockpit: press ?",
    ]
    return answer, "\n".join(lines)


def topic_page(topic: str) -> tuple[dict[str, Any], str]:
    """A page, as data and as Markdown.

    Raises:
        UnknownTopicError: there is no such page.
    """
    text = page(topic)
    name = topic.strip().lower().removesuffix(".md")
    return {"topic": name, "title": topics()[name], "text": text}, text.rstrip("\n")


def draw(text: str, out: TextIO) -> None:
    """Print Markdown: drawn on a terminal, as it is everywhere else."""
    if not out.isatty():
        out.write(f"{text}\n")
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    # No background behind code: it would be black on a light terminal.
    console = Console(file=out, theme=Theme({"markdown.code": "bold cyan", "markdown.code_block": "cyan"}))
    drawing = Markdown(LINK.sub(r"\1 (`help \2`)", text), code_theme="ansi_dark", hyperlinks=False)
    console.print(drawing, width=min(console.width, WIDEST))


# ------------------------------------------------------------------ the subcommand


def run(options: argparse.Namespace) -> int:
    """Print a page of the guide, or all topics."""
    try:
        answer, text = topic_page(options.topic) if options.topic else contents()
    except UnknownTopicError as error:
        return print_error(f"{error} (pilothouse help lists all)")
    if options.topic and not flag(options, "json"):
        draw(text, sys.stdout)
    else:
        print_answer(options, answer, text)
    return 0
