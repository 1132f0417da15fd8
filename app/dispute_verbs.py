"""The words of the command bar by which results are marked as wrong."""

from __future__ import annotations

from collections.abc import Iterable

from app.verb import Context, GrammarError, Intent, Local, Reader, Verb


def _reader(action: str) -> Reader:
    def read(rest: str, context: Context) -> Intent:
        if not rest:
            raise GrammarError(f"{action} what? an event (pilot-1:12), an action (a3), error, a belief's key")
        return Local(action, rest)

    return read


def _marked(context: Context) -> Iterable[tuple[str, str]]:
    return list(context.state.disputed.items()) if context.state is not None else []


VERBS: tuple[Verb, ...] = (
    Verb("wrong", "wrong EVENT|ACTION|BELIEF|error [REASON]",
         "mark a result as wrong, and see what stands on it", _reader("wrong"), "Mind"),
    Verb("right", "right EVENT", "take such a mark back", _reader("right"), "Mind", choices=_marked),
    Verb("retract", "retract EVENT [yes]", "which beliefs nothing else speaks for; yes takes them back",
         _reader("retract"), "Mind", choices=_marked),
)  # fmt: skip
