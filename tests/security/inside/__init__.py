"""Attempts to get out of a jail, made inside of it; one program, put together from batches.

The batches are no modules of this process: their text is handed to a Python in the jail, which sees no file
of this repository.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

BATCHES = ("prelude", "files", "tools", "processes", "network", "terminal", "work")


@cache
def script() -> str:
    """The program; it takes one argument, a JSON object of what lies outside, and prints outcomes by name."""
    here = Path(__file__).parent
    return "\n".join((here / f"{name}.py").read_text(encoding="utf-8") for name in BATCHES)
