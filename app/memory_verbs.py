"""The words of the command bar for what agents are told and remember."""

from __future__ import annotations

from app.verb import Local, Verb, only

VERBS: tuple[Verb, ...] = (
    Verb("context", "context", "what the thinker was told last: shares, words, cost",
         lambda rest, c: Local("context", only(rest, "nothing") if rest else ""), "Mind"),
)  # fmt: skip
