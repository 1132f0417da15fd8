"""The words of the command bar for looking back over all that is recorded."""

from __future__ import annotations

from app.verb import Context, GrammarError, Intent, Local, Verb


def _read_search(rest: str, context: Context) -> Intent:
    if not rest:
        raise GrammarError("what to look for is missing")
    return Local("search", rest)


VERBS: tuple[Verb, ...] = (
    Verb("search", "search WORDS", "search events, outputs, thoughts, prompts, memories and files",
         _read_search, "Cockpit", aliases=("find",)),
)  # fmt: skip
