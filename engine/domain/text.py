"""Cleaning of untrusted text, done once, where it enters a view model or a terminal.

What an agent, a tool, a file or a model said may hold escape sequences, C1 controls and
bidirectional overrides; none of these may reach the operator's terminal
(spec textual-craft §0, §2 and sandbox §0).
"""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*+(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|[\x9d\x90\x98\x9e\x9f][^\x07\x1b\x9c]*+(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
"""A string without an end goes to the next escape, as in a terminal; looking further takes time squared."""
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def clean(text: str, *, limit: int = 100_000) -> str:
    """The text without control characters; newlines stay, tabs become spaces.

    Args:
        text: anything; lone surrogates are removed too.
        limit: characters kept; a longer text ends in `…`.
    """
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    return _CONTROLS.sub("", _SEQUENCES.sub("", text))


def clean_line(text: str, *, limit: int = 2_000) -> str:
    """The text cleaned and on one line; runs of white space become one blank."""
    return " ".join(clean(text[: limit * 4], limit=limit).split())
