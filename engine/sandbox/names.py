r"""File names as text: every name can be shown on one line, typed, kept in JSON, and is the same name again.

What cannot be printed (bytes that are no UTF-8, control characters, marks that turn text around) stands as
`\xNN`, byte by byte, and a backslash that would read as such stands as `\x5c`.
"""

from __future__ import annotations

import os
import re

_ESCAPE = re.compile(r"\\x(5c|7f|0[1-9a-f]|1[0-9a-f]|[89a-f][0-9a-f])")


def shown(path: str) -> str:
    """A path of the file system, as `os.fsdecode` gives it, as text."""
    escaped = _ESCAPE.sub(lambda found: r"\x5c" + found[0][1:], path)
    if escaped.isprintable():
        return escaped
    return "".join(char if char.isprintable() else _bytes(char) for char in escaped)


def _bytes(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))


def meant(text: str) -> str:
    """The path that such a text stands for.

    Raises:
        UnicodeEncodeError: the text holds half a surrogate pair, which no file name can.
    """
    text.encode()
    named = _ESCAPE.sub(lambda found: os.fsdecode(bytes.fromhex(found[1])), text)
    return os.fsdecode(os.fsencode(named))
