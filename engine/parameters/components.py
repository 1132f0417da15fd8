"""Components that a goal names, such as “the summarization tool”, and the files that they are.

The seed looked for four patterns and sent every hit to one directory (spec mindX §3.1); here each name is
found, and resolved to what is in the workspace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.domain.parameters import Entry
from engine.parameters.likeness import bare, folded, handles, split_name

_PATTERNS = (
    re.compile(r"(?<![\w-])(?P<name>\w+_(?:tool|agent))\b", re.I),
    re.compile(r"(?<![\w-])(?P<name>[\w-]+)\s+(?P<kind>tool|agent)\b", re.I),
    re.compile(r"\b(?P<kind>tool|agent)\s+(?:for|called|named)\s+(?:the\s+)?(?P<name>[\w-]+)", re.I),
)
_NO_NAMES = frozenset(
    {
        *("a", "an", "the", "this", "that", "each", "every", "any", "all", "some", "no", "one", "which"),
        *("my", "our", "your", "its", "new", "other", "another", "same", "current", "and", "or"),
    }
)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.I)
GOAL_LIMIT = 8_000
"""Characters of a goal that are read."""


def references(goal: str) -> tuple[str, ...]:
    """The components that a goal names, as `summarization_tool`, in the order of the patterns."""
    found: dict[str, None] = {}
    for pattern in _PATTERNS:
        for match in pattern.finditer(goal[:GOAL_LIMIT]):
            parts = match.groupdict()
            name = folded(parts["name"])
            if name in _NO_NAMES:
                continue
            kind = f"_{parts['kind'].casefold()}" if "kind" in parts else ""
            found[name if name.endswith(kind) else name + kind] = None
    return tuple(found)


def is_name(text: str) -> bool:
    """Whether a text can be a component's name: words without directories and extension."""
    return bool(re.fullmatch(r"[\w -]{1,200}", text)) and bool(text.strip())


def bearers(name: str, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """What bears a component's name, whole or else without `_tool` and `_agent`."""
    name = _ARTICLE.sub("", name.strip())
    known = [(entry, split_name(entry.path.rpartition("/")[2])[0]) for entry in entries]
    whole = tuple(entry for entry, stem in known if folded(stem) == folded(name))
    return whole or tuple(entry for entry, stem in known if bare(stem) == bare(name))


def name_handles(name: str) -> frozenset[str]:
    """The folded names under which a component may lie in the workspace."""
    return handles(_ARTICLE.sub("", name.strip()))
