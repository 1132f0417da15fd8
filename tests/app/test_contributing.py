"""The examples of CONTRIBUTING.md are the code that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(
    r"^```python\n# (\S+\.py)\n(.*?)^```$",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


def test_a_command_and_an_event_are_shown() -> None:
    assert {"app/commands/notes.py", "engine/core/notes.py"} <= {path for path, _ in EXAMPLES}


@pytest.mark.parametrize(("path", "code"), EXAMPLES, ids=lambda value: value[:30])
def test_an_example_is_the_code_that_is_there_and_short(path: str, code: str) -> None:
    assert len(code.splitlines()) < 40
    assert code.strip() in (ROOT / path).read_text(encoding="utf-8")
