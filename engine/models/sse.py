"""Server-sent events: bytes as they come, events as they are complete."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

EVENT_LIMIT = 8 * 1024 * 1024
"""Longest event in characters; no answer of a model has a longer one."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of a stream."""

    name: str
    """The `event` field, empty where the sender left it out."""
    data: str


class EventTooLongError(ValueError):
    """An event has no end within the limit."""


class EventReader:
    """Cuts bytes into events, wherever the pieces are cut (WHATWG, server-sent events §9.2)."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest: list[str] = []
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """The events that this piece completes.

        Raises:
            UnicodeDecodeError: the bytes are not UTF-8.
            EventTooLongError: an event grows beyond the limit.
        """
        self._rest.append(self._decoder.decode(piece))
        self._size += len(self._rest[-1])
        if self._size > EVENT_LIMIT:
            raise EventTooLongError(f"an event is longer than {EVENT_LIMIT // 1024 // 1024} MiB")
        if not any(end in part for part in (self._rest[0], self._rest[-1]) for end in "\r\n"):
            return []
        text = "".join(self._rest)
        # A carriage return at the end may be half of a line end.
        cut = text.endswith("\r")
        lines = (text[:-1] if cut else text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = [lines.pop() + ("\r" if cut else "")]
        found = [event for line in lines if (event := self._line(line)) is not None]
        self._size = sum(map(len, self._data)) + len(self._rest[0])
        return found

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            done = ServerEvent(self._name, "\n".join(self._data)) if self._data or self._name else None
            self._name, self._data = "", []
            return done
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        return None
