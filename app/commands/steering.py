"""Commands that steer an agent: running, pausing, stepping, stopping, and taking its turn or its shell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from app.commands.arguments import Rest, Word, among, goal_id, matching, pairs
from app.commands.breakpoints import GRADES, STOP_SCOPES
from app.commands.command import Context, Form, GrammarError, Group, Show, Submit, Values, late
from app.commands.crew_arguments import handoff_choices, of_handoff, step_mode_choices
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core.sandbox import StopGrade

NEEDS_COCKPIT = "a shell needs the cockpit, where you can work in it"
WHERE_IT_ENDED = "place"
"""What `settle` calls the directory and virtual environment in which the shell ended."""
command = Group("Steering")


def _stop(context: Context, values: Values) -> cmd.Stop:
    """`stop`, `stop freeze`, `stop all`, `stop hold children`."""
    grade, scope = StopGrade.KILL.value, "agent"
    words = values.get("how", "").lower().split()
    if words and words[0] in list(StopGrade):
        grade = words.pop(0)
    if words and words[0] in STOP_SCOPES:
        scope = words.pop(0)
    if words:
        raise GrammarError(
            f"'{words[0][:40]}' does not fit; first a grade ({', '.join(StopGrade)}), "
            f"then a scope ({', '.join(STOP_SCOPES)})"
        )
    return cmd.Stop.model_validate({"agent": context.agent, "grade": grade, "scope": scope})


def _stop_words(_context: Context) -> Iterable[tuple[str, str]]:
    return [*((grade.value, does) for grade, (_, does) in GRADES.items()), *STOP_SCOPES.items()]


def _thaw_scope(text: str, _context: Context) -> str:
    text = text.lower()
    if text not in STOP_SCOPES:
        raise GrammarError(f"'{text[:40]}' is no scope; scopes: {', '.join(STOP_SCOPES)}")
    return text


def _settle(context: Context, values: Values) -> cmd.SettleChanges:
    words = values.get("changes", "all").split()
    if "all" in words:
        return cmd.SettleChanges(agent=context.agent)
    keys = tuple(word for word in words if word not in ("none", WHERE_IT_ENDED))
    return cmd.SettleChanges(agent=context.agent, accept=keys, follow=WHERE_IT_ENDED in words)


def _changes(context: Context) -> Iterable[tuple[str, str]]:
    handover = context.state.handover if context.state else None
    if handover is None:
        return []
    place = [(WHERE_IT_ENDED, "go on where the shell ended")] if handover.session else []
    changes = [(offer.key, offer.text) for offer in handover.offers]
    return [("all", "all that changed"), ("none", "none of it"), *changes, *place]


def _steps(context: Context) -> Iterable[tuple[str, str]]:
    yield "over", "the pending step and all below it"
    yield "out", "the rest of its goal"
    yield "all", "one action of every paused agent"
    yield from step_mode_choices(context)


SCOPES = pairs(*STOP_SCOPES.items())
LOOPS = matching(
    "[0-9]{1,9}", "a number of loops or nothing is expected; to run a shell command type: ! run …", int
)
STEP_SCOPE = among(("over", "out"), "nothing, over or out may follow, or all for every paused agent")
ON_OFF = among({"on": True, "off": False}, "step mode is on or off; '{}' is neither")
SCOPE = Rest("scope", "a scope", optional=True, shown="[over|out]", parse=STEP_SCOPE)
THAWED = Rest(
    "scope", "a scope", optional=True, shown="[agent|children|all]", parse=_thaw_scope, offers=SCOPES
)
NOTE = Rest("note", "a note", optional=True)
COMMANDS = (
    command(
        "run go resume",
        cmd.Run,
        Rest("max_loops", "a number", optional=True, shown="LOOPS", parse=LOOPS),
        forms=(of_handoff(cc.ResumeHandoff),),
        choices=handoff_choices,
    ),
    command("until", cmd.Run, goal_id("until", optional=True)),
    command("pause", cmd.Pause, forms=(of_handoff(cc.PauseHandoff),), choices=handoff_choices),
    command(
        "step",
        cmd.Step,
        SCOPE,
        forms=(
            Form(
                Show(late("command_runner:step_all"), "step_all", changes=True),
                (replace(SCOPE, default="step"),),
                word="all",
                when=r"all(\s+(over|out))?\s*\Z",
            ),
            of_handoff(cc.StepMode, Word("on", "one of on, off", True, shown="[on|off]", parse=ON_OFF)),
        ),
        choices=_steps,
    ),
    command(
        "stop",
        Submit(_stop),
        Rest("how", "a grade", optional=True, shown="[GRADE] [agent|children|all]", offers=_stop_words),
    ),
    command("thaw", cmd.Thaw, THAWED),
    command("intervene", cmd.Intervene),
    command("handback hand_back", cmd.HandBack),
    command("take_shell shell", Submit(cmd.TakeShell, view="session", screen=NEEDS_COCKPIT)),
    command("return_shell", Submit(cmd.ReturnShell, view="session", screen=NEEDS_COCKPIT), NOTE),
    command(
        "settle",
        Submit(_settle),
        Word("changes", "what it is to know", True, "[all|none|KEY …]", offers=_changes, rest=True),
    ),
)
