"""Whether the end of the journal's log is torn, which SQLite passes over in silence.

The log is SQLite's write-ahead log: a header and frames, each with the header's salts and a running checksum;
a transaction ends with a frame that tells the size of the database. What stands behind the last whole
transaction and bears the present salts was cut off, damaged, or never finished. Source: spec steering §4 T7;
SQLite's "WAL File Format".
"""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
"""To the order of bytes in which its checksums are made."""
_WORD = 0xFFFFFFFF


def torn_bytes(log: Path) -> int:
    """Bytes at the end of a log that are no whole transaction; 0 when there are none, or no log.

    Blocking; reads the whole log, which is there only where the last session did not end in good order.
    """
    try:
        content = log.read_bytes()
    except OSError:
        return 0
    if len(content) < _HEADER.size:
        return 0
    magic, _version, page, _number, *salts, one, two = _HEADER.unpack_from(content)
    order = _MAGIC.get(magic)
    if order is None or not 512 <= page <= 65536:
        return 0
    sums = (one, two)
    whole = at = _HEADER.size
    while at + _FRAME.size <= len(content):
        _page, size, *theirs = _FRAME.unpack_from(content, at)
        if theirs[:2] != salts:
            break  # of an earlier round through the log
        end = at + _FRAME.size + page
        sums = _checked(content[at : at + 8] + content[at + _FRAME.size : end], order, sums)
        if end > len(content) or tuple(theirs[2:]) != sums:
            return _torn_from(content, whole, page, salts)
        at = end
        whole = at if size else whole
    return at - whole


def _torn_from(content: bytes, begin: int, page: int, salts: list[int]) -> int:
    """How many bytes behind a place bear the present salts."""
    end = begin
    while end + _FRAME.size <= len(content) and list(_FRAME.unpack_from(content, end)[2:4]) == salts:
        end = min(end + _FRAME.size + page, len(content))
    return end - begin


def _checked(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """The running checksum after some more bytes."""
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data[: len(data) // 4 * 4])
    for first, second in zip(words[::2], words[1::2], strict=False):
        one = (one + first + two) & _WORD
        two = (two + second + one) & _WORD
    return one, two
