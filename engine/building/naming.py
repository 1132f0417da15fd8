"""Names of agents: the id and the class that a skill's name gives."""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata

_MOST = 64
_LETTERS = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "þ": "th", "ð": "d", "ı": "i"}


def slug(text: str, most: int = _MOST) -> str:
    """A kebab id of a name: ASCII where it can be written so, else marked by a hash; empty for no name."""
    folded = "".join(
        _LETTERS.get(letter, letter) for letter in unicodedata.normalize("NFKD", text.casefold())
    )
    folded = "".join(letter for letter in folded if not unicodedata.combining(letter))
    folded = re.sub(r"['’`]", "", folded)
    told = re.sub(r"[^a-z0-9]+", "-", folded).strip("-")
    lost = any(letter.isalnum() and not letter.isascii() for letter in folded)
    if lost or (text.strip() and not told):
        mark = hashlib.sha256(
            unicodedata.normalize("NFKC", text.strip()).encode("utf-8", "replace")
        ).hexdigest()[:8]
        told = f"{told[: most - 9].rstrip('-')}-{mark}" if told else f"agent-{mark}"
    return told[:most].strip("-")


def class_name(agent_id: str) -> str:
    """The class of an agent: `PwsValidationAgent` of `pws-validation`. An identifier, whatever the id."""
    words = "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", agent_id))
    name = f"{'A' if words[:1].isdigit() else ''}{words}Agent"
    return name if name.isidentifier() and not keyword.iskeyword(name) else "AAgent"


def unique(wanted: str, taken: set[str]) -> str:
    """The id, or the id with a number where it is taken; it is taken afterwards."""
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted[:58]}-{number}"
    taken.add(found)
    return found
