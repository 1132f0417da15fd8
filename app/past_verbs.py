"""The words of the command bar for time: going back, and comparing."""

from __future__ import annotations

from collections.abc import Iterable

from app.verb import Context, GrammarError, Intent, Local, Verb, only


def _read_past(rest: str, context: Context) -> Intent:
    return Local("past", only(rest, "an event such as 120, or now"))


def _read_compare(rest: str, context: Context) -> Intent:
    if len(rest.split()) > 2:
        raise GrammarError("at most two events are compared")
    return Local("compare", rest)


def _points(context: Context) -> Iterable[tuple[str, str]]:
    here = context.state.version if context.state is not None else 0
    return [("now", "what happens"), *([(str(here), "the newest event that is shown")] if here else [])]


VERBS: tuple[Verb, ...] = (
    Verb("past", "past EVENT|now", "see every pane as it was at an event; nothing acts there", _read_past,
         "Time", choices=_points),
    Verb("compare", "compare [EVENT|AGENT] [EVENT|AGENT]", "what differs between two points or agents: plan, "
         "beliefs, memory, files; by default here and now", _read_compare, "Time", choices=_points),
)  # fmt: skip
