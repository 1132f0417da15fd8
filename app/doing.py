"""`pilothouse do`: one line of the command bar, without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.grammar import find_verb, read_line, verb_of
from app.headless import EXIT_CODES, Status, opened
from app.lines import ending_jobs
