"""Prompts as nested sections; a heading's depth follows from its nesting (spec BDI §2.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a prompt, of texts and further sections."""

    title: str
    parts: tuple[Section | str, ...]

    def render(self, depth: int = 1) -> str:
        """The section as Markdown, its heading with `depth` number signs."""
        inside = (
            part.render(depth + 1) if isinstance(part, Section) else _deepened(part, depth)
            for part in self.parts
        )
        return "\n\n".join([f"{'#' * depth} {self.title}", *inside])


def _deepened(text: str, depth: int) -> str:
    """The text with its own headings put below a heading of this depth."""
    return "\n".join(f"{'#' * depth}{line}" if line.startswith("#") else line for line in text.split("\n"))


def section(title: str, *parts: Section | str) -> Section:
    """A section of these parts."""
    return Section(title, parts)


def from_file(name: str) -> str:
    """A text that ships with the package; its headings begin at depth 1."""
    return (files("engine.generation.pgp") / "prompts" / name).read_text(encoding="utf-8").strip()


def from_formatter(values: Iterable[_T], formatted: Callable[[_T], str]) -> str:
    """A bullet list, one value a line; `None.` when there is none."""
    return "\n".join(f"- {formatted(value)}" for value in values) or "None."
