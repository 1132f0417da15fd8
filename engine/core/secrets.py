"""What looks like a secret: left out of child environments, logs and what is sent away."""

from __future__ import annotations

import os
import re

HIDDEN = "•••"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL", re.IGNORECASE)
_SECRET = re.compile(
    r"\b(?:ph_[\w-]{20,}|sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[a-z]-[\w-]{10,}|AKIA\w{16}|"
    r"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)|"
    r"(?i:(?<=bearer )[\w.~+/-]{12,}|(?<=password=)[^\s&]+|(?<=token=)[^\s&]+)"
)
"""What looks like a secret."""


def plain_environment() -> dict[str, str]:
    """The environment without variables that are named like secrets or hold what looks like one."""
    items = os.environ.items()
    return {name: text for name, text in items if not (_SECRET_NAME.search(name) or _SECRET.search(text))}


def without_secrets(text: str) -> str:
    """A text without what looks like a secret; the name of a variable that holds one stands for it."""
    for name, value in os.environ.items():
        if len(value) >= 8 and _SECRET_NAME.search(name):
            text = text.replace(value, f"[{name}]")
    return _SECRET.sub(HIDDEN, text)
