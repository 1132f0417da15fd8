"""The words of the command bar for changing time: going back, undoing, forking."""

from __future__ import annotations

from collections.abc import Iterable

from app.verb import Context, GrammarError, Intent, Local, Reader, Verb, only


def _read_rewind(rest: str, context: Context) -> Intent:
    from app.rewinding import read_rewind

    read_rewind(rest)  # a slip is told at once
    return Local("rewind", rest)


def _read_fork(rest: str, context: Context) -> Intent:
    from app.forking import read_fork

    read_fork(rest)
    return Local("fork", rest)


def _read_adopt(rest: str, context: Context) -> Intent:
    flag = rest.endswith((" --yes", " --dry-run"))
    only(rest.rpartition(" ")[0] if flag else rest, "a fork's id")
    return Local("adopt", rest)


def _read_undo(action: str) -> Reader:
    def read(rest: str, context: Context) -> Intent:
        if rest not in ("", "--yes", "--dry-run"):
            raise GrammarError(f"only --yes or --dry-run may follow; '{rest[:40]}' is too much")
        return Local(action, rest)

    return read


def _places(context: Context) -> Iterable[tuple[str, str]]:
    state = context.state
    if state is None:
        return []
    steps = [step for step in state.plan.steps if step.attempts] if state.plan else []
    return [
        (str(state.version), "the newest event that is shown"),
        ("here", "the event that is looked at"),
        *((step.id, f"before {step.description}") for step in steps),
        ("files ", "only files: rewind files EVENT [PATH …]"),
        ("state ", "only goals, plan and beliefs"),
    ]


def _forks(context: Context) -> Iterable[tuple[str, str]]:
    return [(agent, "an agent") for agent in context.agents if agent != context.agent]


VERBS: tuple[Verb, ...] = (
    Verb("rewind", "rewind [files|state] EVENT|ACTION|STEP|GOAL|-N [PATH …] [--yes]", "take the agent and "
         "its files back; a preview comes first, with what cannot be undone", _read_rewind, "Time",
         choices=_places),
    Verb("fork", "fork EVENT|ACTION|STEP|-N [NEW-ID] [xN] [with belief KEY=VALUE]", "let a new "
         "agent begin there, with files of its own; x5 makes five and lets them run", _read_fork,
         "Time", choices=_places),
    Verb("adopt", "adopt FORK [--yes]", "give the agent the files that a fork of it has; a preview comes "
         "first", _read_adopt, "Time", choices=_forks),
    Verb("outcomes", "outcomes", "what came of the agent and of its forks, with intervals",
         lambda rest, c: Local("outcomes", rest), "Time"),
    Verb("undo", "undo [--dry-run]", "undo your last change to the agent; what that means is shown first",
         _read_undo("undo"), "Time"),
    Verb("redo", "redo [--dry-run]", "do again what was undone last", _read_undo("redo"), "Time"),
)  # fmt: skip
