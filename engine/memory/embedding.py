"""Who turns texts into vectors: the port, and what its implementations share."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from engine.memory.errors import MemoryFault

Vector: TypeAlias = "array[float]"
"""An `array("f")` of length 1."""
Kind = Literal["query", "passage"]
"""Some models turn what is looked for into other vectors than what is looked through."""
INSTALL = "pip install 'pilothouse[embed]'"
BATCH = 8
"""Texts that are embedded at a time; what is asked meanwhile waits for one such batch."""
OTHER_SIZE = "answers vectors of another size than before"
TEXT_LIMIT = 4_000
"""Characters of a text that are embedded; models read some hundred words."""


class EmbedderError(MemoryFault):
    """Texts could not be embedded; the message says why and what to do."""

    def __init__(self, message: str, *, of_text: bool = False) -> None:
        super().__init__(message)
        self.of_text = of_text
        """Whether another text may be embedded all the same."""


class Embedder(Protocol):
    """Turns texts into vectors, off the event loop."""

    @property
    def id(self) -> str:
        """Names the model and its digest or place; vectors of two ids are never compared."""

    @property
    def dim(self) -> int:
        """Numbers of a vector, as it was answered last; 0 before the first answer."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> list[Vector]:
        """The vector of each text, of length 1.

        Raises:
            EmbedderError: there is none; nothing was embedded.
        """

    async def close(self) -> None:
        """Let go of what it holds; may be called again."""


def unit(numbers: Sequence[float]) -> Vector | None:
    """The vector of length 1 in the direction of these numbers; None where they have none."""
    length = math.sqrt(sum(number * number for number in numbers))
    if not (length > 0 and math.isfinite(length)):
        return None
    return array("f", [number / length for number in numbers])
