"""When two names are the same but for case, separators or extension."""

from __future__ import annotations

import posixpath
import re
import unicodedata

_SEPARATORS = re.compile(r"[-_ ]+")
_SUFFIX = re.compile(r"_(?:tool|agent)$")
_KINDS = ({"yml", "yaml"}, {"jpg", "jpeg"}, {"htm", "html"}, {"txt", "text"}, {"md", "markdown"})
"""Extensions that are two spellings of one."""


def folded(text: str) -> str:
    """A text whose case, and whose kind of separator within words and between directories, no longer tell."""
    return _SEPARATORS.sub("_", unicodedata.normalize("NFC", text).replace("\\", "/").casefold())


def split_name(path: str) -> tuple[str, str]:
    """A path without its extension, and the extension without its dot; a name may begin with a dot."""
    root, extension = posixpath.splitext(path)
    return root, extension[1:]


def bare(name: str) -> str:
    """A component's folded name without `_tool` or `_agent` at its end."""
    return _SUFFIX.sub("", folded(name))


def handles(path: str) -> frozenset[str]:
    """The folded names by which a path may be meant: its last name, whole, without extension, and bare."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    stem = split_name(name)[0]
    return frozenset({folded(name), folded(stem), bare(stem)})


def place(cwd: str, path: str) -> str | None:
    """Where a path leads, relative to the root and by words alone; None when it leaves the root."""
    path = path.replace("\\", "/")
    if not path.strip() or "\0" in path or path.startswith("/"):
        return None
    joined = posixpath.normpath(posixpath.join(cwd, path))
    return None if joined == ".." or joined.startswith("../") else joined


def near(wanted: str, there: str) -> bool:
    """Whether two paths from the root differ in nothing but case, separators and extension.

    One extension must be missing, or both be spellings of one: a file of another kind is another file.
    """
    if folded(wanted) == folded(there):
        return True
    (root, extension), (other, other_extension) = split_name(wanted), split_name(there)
    if folded(root) != folded(other) or posixpath.basename(root).startswith("."):
        return False
    pair = {extension.casefold(), other_extension.casefold()}
    return "" in pair or any(pair <= kind for kind in _KINDS)


def differences(wanted: str, there: str) -> str:
    """In what two near paths differ, in words."""
    (root, extension), (other, other_extension) = split_name(wanted), split_name(there)
    found = []
    if extension.casefold() != other_extension.casefold():
        found.append("extension")
    else:
        root, other = wanted, there
    if root.casefold() != other.casefold():
        found.append("separators")
    if _SEPARATORS.sub("_", root.replace("\\", "/")) != _SEPARATORS.sub("_", other):
        found.append("case")
    return " and ".join(found)
