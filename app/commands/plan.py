"""Commands about an agent's plan and its steps."""

from __future__ import annotations

from functools import partial
from typing import Any

from app.commands.arguments import (
    Rest,
    Word,
    among,
    json_value,
    open_steps,
    read_goal_id,
    read_step_id,
    step_id,
)
from app.commands.coder_shell import LineError, parse_line
from app.commands.command import Context, Form, GrammarError, Group, Show, Submit, Values
from app.commands.crew_arguments import handoff_choices, of_handoff
from engine.core import commands as cmd
from engine.core import crew_commands as cc

command = Group("Plan")


def tool_line(text: str, context: Context) -> tuple[str, dict[str, Any], str]:
    """A command of the sandbox tool as it is typed: its name, its arguments, and the line."""
    try:
        return *parse_line(text, context.spec_of), text
    except LineError as error:
        raise GrammarError(str(error)) from None


TOOL_LINE = partial(Rest, "call", "a command such as: write notes.txt hello", parse=tool_line)


def _edit(context: Context, values: Values) -> cmd.EditStep:
    name, args, _ = values["call"]
    return cmd.EditStep(agent=context.agent, step=values["step"], command=name, args=args)


def _edit_fields(context: Context, values: Values) -> cmd.EditStep:
    changes = json_value(values["changes"])
    return cmd.EditStep.model_validate({**changes, "agent": context.agent, "step": values["step"]})


def _insert(context: Context, values: Values) -> cmd.InsertStep:
    name, args, line = values["call"]
    return cmd.InsertStep(
        agent=context.agent, before=values.get("before"), command=name, args=args, description=line[:80]
    )


def _retry(context: Context, values: Values) -> cmd.RetryStep:
    """A step, or the plan of a goal whose planning failed."""
    named, state = values.get("what", ""), context.state
    planless = state is not None and state.step is None and state.current_goal
    if named[:1] in ("g", "G") or (planless and named in ("", "this", ".")):
        return cmd.RetryStep(agent=context.agent, goal=read_goal_id(named, context))
    return cmd.RetryStep(agent=context.agent, step=read_step_id(named, context))


def _replace(context: Context, values: Values) -> cmd.ReplacePlan:
    return cmd.ReplacePlan(agent=context.agent, goal=read_goal_id("", context), plan=values["plan"])


CHANGES = Rest("changes", "what changes", shown="JSON")
CALL = TOOL_LINE(shown="COMMAND ARGUMENTS")
WHERE = among({"up": -1, "down": 1}, "say where: move STEP up, or move STEP down")
SKIPPED = Rest("reason", "a reason", optional=True, default="skipped by the operator")
COMMANDS = (
    command(
        "plan", Submit(_replace), Rest("plan", "clauses in English, or a JSON plan,", shown="CLAUSES|JSON")
    ),
    command(
        "edit",
        Submit(_edit),
        *(step_id(), TOOL_LINE(shown="[COMMAND ARGUMENTS | JSON]")),
        forms=(
            Form(Show(view="edit_step"), (step_id(),), when=r"\S+\Z"),
            Form(Submit(_edit_fields), (step_id(), CHANGES), when=r"\S+\s+\{"),
        ),
    ),
    command(
        "insert",
        Submit(_insert),
        CALL,
        forms=(Form(Submit(_insert), (step_id("before"), CALL), word="before", when=r"before\s+\S+\s"),),
    ),
    command("delete", cmd.DeleteStep, step_id()),
    command("move", cmd.MoveStep, *(step_id(), Word("by", "up or down", shown="up|down", parse=WHERE))),
    command("skip", cmd.SkipStep, step_id(optional=True), SKIPPED),
    command(
        "retry",
        Submit(_retry),
        Rest("what", "a step", optional=True, shown="[STEP|GOAL]"),
        forms=(of_handoff(cc.RetryHandoff),),
        choices=lambda context: [*open_steps(context), *handoff_choices(context)],
    ),
    command("unsaved", cmd.WaiveSnapshot, step_id(optional=True)),
    command("result", cmd.GiveResult, *(step_id(), Rest("result", "the result", shown="TEXT"))),
)
