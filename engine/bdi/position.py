"""Where something stands in the text of a program."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """A place in a text, both counted from 1; zero where there was no text."""

    line: int = 0
    column: int = 0
