"""The second net against escape injection: a filter over every segment on its way to the terminal.

The first net is the cleaning of untrusted text where it enters a view model. This one makes
sure that a text someone forgot to clean, or one the operator pasted, still cannot act on
the terminal (spec textual-craft §0 findings 1 and 2).
"""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def _harmless(match: re.Match[str]) -> str:
    """As many replacement characters as the control took cells, so that columns stay aligned."""
    return "�" * cell_len(match.group())


class ControlCharacterFilter(LineFilter):
    """Takes C0, C1 and bidirectional controls out of whatever any widget renders.

    Append `GUARD` to what `App.get_line_filters` returns. Cursor movement and colours are not
    affected: Textual adds those after the filters.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments without control characters; clean ones are passed through as they are."""
        return [
            segment
            if segment.text.isascii() and segment.text.isprintable()
            else Segment(_UNSAFE.sub(_harmless, segment.text), segment.style, segment.control)
            for segment in segments
        ]


GUARD = ControlCharacterFilter()
"""The one to append: Textual remembers what each filter made of a line, so there must be one of it."""
