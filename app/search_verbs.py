"""The words of the command bar for looking back over all that is recorded."""

from __future__ import annotations

import re

from app.verb import Context, GrammarError, Intent, Local, Verb, only


def _read_search(rest: str, context: Context) -> Intent:
    if not rest:
        raise GrammarError("what to look for is missing")
    return Local("search", rest)


def _read_recap(rest: str, context: Context) -> Intent:
    place = only(rest, "the number of an event") if rest else ""
    if place and not re.fullmatch(r"[0-9]{1,18}", place):
        raise GrammarError(f"'{place[:40]}' is no number of an event")
    return Local("recap", place)


def _read_play(rest: str, context: Context) -> Intent:
    return Local("play", only(rest, "a shell's action, such as a3").lower() if rest else "")


VERBS: tuple[Verb, ...] = (
    Verb("search", "search WORDS", "search events, outputs, thoughts, prompts, memories and files",
         _read_search, "Cockpit", aliases=("find",)),
    Verb("recap", "recap [EVENT]", "what happened since you last looked, or behind the event of this number",
         _read_recap, "Cockpit"),
    Verb("play", "play [ACTION]", "a recorded shell of yours as it was seen, for asciinema and other players",
         _read_play, "Cockpit"),
)  # fmt: skip
