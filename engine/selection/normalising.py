"""Words as the selection graph compares them, and the triggers that a text holds.

Source: ontology spec §3.3. Nothing fuzzier than this: no stemming, and no parts of words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def normalise(text: str) -> str:
    """A word or phrase as it is compared: NFKC, casefold, `_` as `-`, single blanks between words.

    Normalising twice changes nothing.
    """
    while True:
        # Folding can leave what composes again, and composing what folds; both settle after a round or two.
        folded = " ".join(unicodedata.normalize("NFKC", text).casefold().replace("_", "-").split())
        if folded == text:
            return folded
        text = folded


def normalised(words: Iterable[str]) -> tuple[str, ...]:
    """Words normalised in their order, each once; blank ones are dropped."""
    return tuple(dict.fromkeys(word for word in map(normalise, words) if word))


def triggers_in(text: str, vocabulary: Iterable[str]) -> tuple[str, ...]:
    """The triggers of a vocabulary that a text holds as whole words, those of several words as phrases.

    Words that a hyphen joins are one word, as are those that `_` joins: `defined` is not in `ill-defined`.

    Args:
        text: what a person or an agent said.
        vocabulary: triggers of registered agents.

    Returns:
        Normalised triggers, sorted.
    """
    inside = normalise(text)
    return tuple(sorted(trigger for trigger in normalised(vocabulary) if _stands_in(trigger, inside)))


def _stands_in(trigger: str, text: str) -> bool:
    at = text.find(trigger)
    while at >= 0:
        end = at + len(trigger)
        if not _goes_on(text[max(0, at - 2) : at][::-1]) and not _goes_on(text[end : end + 2]):
            return True
        at = text.find(trigger, at + 1)
    return False


def _goes_on(beyond: str) -> bool:
    """Whether a word goes on with the one or two characters beyond it, nearest first."""
    return any(map(_is_letter, beyond[:1])) or (beyond[:1] == "-" and any(map(_is_letter, beyond[1:])))


def _is_letter(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")
