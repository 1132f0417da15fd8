"""The user's guide: one Markdown page a topic, shipped with the package.

`topics()` lists the pages, `page(topic)` gives one of them. `pilothouse help` prints them, and whatever else
shows help can do the same from these two functions. Each page begins with `# Title` and one sentence that
says what it is about. To add a page, add the file and its place in `order.txt`.
"""

from __future__ import annotations

import difflib
from importlib.resources import files

READING_ORDER = tuple(files(__name__).joinpath("order.txt").read_text("utf-8").split())
"""The topics, from what a new user needs first to what is looked up."""


class UnknownTopicError(KeyError):
    """There is no page on a topic.

    Attributes:
        topic: what was asked for.
        nearest: the topics with names like it, best first; often none.
    """

    def __init__(self, topic: str, nearest: tuple[str, ...]) -> None:
        super().__init__(topic)
        self.topic, self.nearest = topic, nearest

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        return f"there is no help topic '{self.topic[:40]}'{hint}"


def topics() -> dict[str, str]:
    """The title of each topic, in reading order."""
    return {topic: page(topic).partition("\n")[0].removeprefix("# ").strip() for topic in READING_ORDER}


def page(topic: str) -> str:
    """The Markdown text of a page; letters of either case will do.

    Raises:
        UnknownTopicError: there is no such page; it names those that are near.
    """
    name = topic.strip().lower().removesuffix(".md")
    if name not in READING_ORDER:
        raise UnknownTopicError(topic, tuple(difflib.get_close_matches(name, READING_ORDER, n=3)))
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")


def summary(topic: str) -> str:
    """The sentence below a page's title, on one line.

    Raises:
        UnknownTopicError: there is no such page.
    """
    return " ".join(page(topic).split("\n\n")[1].split())
