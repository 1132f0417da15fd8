"""The words of the command bar that stop agents in grades, and thaw them."""

from __future__ import annotations

from collections.abc import Iterable

from app.stopping import GRADES, SCOPES
from app.verb import Context, GrammarError, Intent, Verb
from engine.domain import commands as cmd
from engine.domain.stopping import StopGrade


def _read_stop(rest: str, context: Context) -> Intent:
    """`stop`, `stop freeze`, `stop all`, `stop hold children`."""
    grade, scope = StopGrade.KILL.value, "agent"
    words = rest.lower().split()
    if words and words[0] in list(StopGrade):
        grade = words.pop(0)
    if words and words[0] in SCOPES:
        scope = words.pop(0)
    if words:
        raise GrammarError(
            f"'{words[0][:40]}' does not fit; first a grade ({', '.join(StopGrade)}), "
            f"then a scope ({', '.join(SCOPES)})"
        )
    return cmd.Stop.model_validate({"agent": context.agent, "grade": grade, "scope": scope})


def _read_thaw(rest: str, context: Context) -> Intent:
    scope = rest.lower() or "agent"
    if scope not in SCOPES:
        raise GrammarError(f"'{scope[:40]}' is no scope; scopes: {', '.join(SCOPES)}")
    return cmd.Thaw.model_validate({"agent": context.agent, "scope": scope})


def _grades(context: Context) -> Iterable[tuple[str, str]]:
    yield from ((grade.value, does) for grade, (_, does) in GRADES.items())
    yield from SCOPES.items()


VERBS = (
    Verb("stop", "stop [GRADE] [agent|children|all]", "after, hold, cut, cancel, freeze or kill (the usual); "
         "a receipt says what was stopped and what still runs", _read_stop, "Steering", choices=_grades),
    Verb("thaw", "thaw [agent|children|all]", "let frozen processes go on; the agent stays held", _read_thaw,
         "Steering", choices=lambda context: SCOPES.items()),
)  # fmt: skip
