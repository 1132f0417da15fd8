"""The kind of event by which an operator says that something recorded is wrong."""

from __future__ import annotations

from typing import ClassVar

from engine.journal.payload import Payload


class ResultDisputed(Payload):
    """The operator marks something of this stream as wrong, or takes that back; nothing else follows."""

    kind: ClassVar[str] = "result.disputed"
    event: str
    """What is marked, as `stream:version`."""
    reason: str = ""
    lifted: bool = False
    """Whether the mark is taken back."""
