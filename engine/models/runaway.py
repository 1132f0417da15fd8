"""When an answer is cut: its JSON is whole, it repeats itself, or it is longer than was asked for."""

from __future__ import annotations

from engine.core.text import StrictJsonError, first_json
from engine.models.messages import Piece, StopReason
from engine.models.request import CHARACTERS_PER_TOKEN, ModelRequest

REPEATED = 40 * CHARACTERS_PER_TOKEN
"""Characters that count as a repetition where they come three times in a row."""
LONGEST_PERIOD = 25 * REPEATED
_LONGEST_TOKEN = 8
"""Characters of a token, on average, in the longest answers of a given number of tokens."""
_SPARE = 1_000


def repeats(text: str) -> bool:
    """Whether a text ends with the same passage three times in a row, of at least forty tokens each."""
    tail = text[-REPEATED:]
    before = text.rfind(tail, max(0, len(text) - LONGEST_PERIOD - REPEATED), len(text) - 1)
    period = len(text) - len(tail) - before
    if len(tail) < REPEATED or before < 0 or period > LONGEST_PERIOD:
        return False
    length = 3 * max(period, REPEATED)
    end = text[-length:]
    return len(end) == length and end[period:] == end[:-period]


class Runaway:
    """Watches one answer come."""

    def __init__(self, request: ModelRequest) -> None:
        self._schema = request.json_schema
        self._longest = request.max_tokens * _LONGEST_TOKEN + _SPARE
        self._size = 0
        self._looked = 0
        self._texts: dict[int, str] = {}
        self._passed = 0
        self._ended = False

    def take(self, piece: Piece) -> StopReason | None:
        """Why the answer is to be cut after a piece; None where it goes on."""
        if piece.kind not in ("text", "thinking", "tool_input"):
            return None
        if self._ended:
            # One more piece is waited for, since most servers end by themselves, and say what it took.
            return StopReason.END_TURN
        text = self._texts[piece.block] = self._texts.get(piece.block, "") + piece.text
        self._size += len(piece.text)
        if piece.kind == "text" and self._schema is not None and "}" in piece.text:
            self._ended = self._whole(text)
        if self._size > self._longest:
            return StopReason.MAX_TOKENS
        if self._size - self._looked >= REPEATED:
            self._looked = self._size
            if repeats(text):
                return StopReason.REPETITION
        return None

    def _whole(self, text: str) -> bool:
        """Whether an object of the answer's schema is whole in a text, behind those that were passed."""
        names = (self._schema or {}).get("properties", {})
        while (begin := text.find("{", self._passed)) >= 0:
            try:
                value, self._passed = first_json(text, begin)
            except StrictJsonError:
                return False
            # Some models say the schema again before they answer.
            if not names or any(name in names for name in value):
                return True
        return False
