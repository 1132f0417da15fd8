"""Commands about goals: adopting, changing, ordering and dropping them, and shipped missions."""

from __future__ import annotations

from app.commands.arguments import Prefix, Rest, Word, goal_id, listed, matching, open_goals, read_goal_id
from app.commands.command import Context, GrammarError, Group, Submit, Values, late
from app.commands.crew_arguments import handoff_choices, of_handoff
from engine.core import commands as cmd
from engine.core import crew_commands as cc

command = Group("Goals")


def _goal_text(text: str, _context: Context) -> tuple[str, tuple[str, ...]]:
    """The text and the criteria behind it."""
    goal, *criteria = (part.strip() for part in text.split("||"))
    if not goal:
        raise GrammarError("the goal's text is missing")
    return goal, tuple(filter(None, criteria))


def _adopt(context: Context, values: Values) -> cmd.AdoptGoal:
    text, criteria = values["text"]
    priority = values.get("priority", 1)
    return cmd.AdoptGoal(agent=context.agent, text=text, priority=priority, criteria=criteria)


def _above(text: str, context: Context) -> str:
    return "" if text == "none" else read_goal_id(text, context)


EXAMPLES = listed(lambda context: context.examples())
NUMBER = matching(r"-?\d{1,6}", "a whole number is expected; larger is more urgent", int)
URGENCY = matching("[123]", "a handoff's priority is 1 normal, 2 high or 3 urgent", int)
COMMANDS = (
    command(
        "goal",
        Submit(_adopt),
        Prefix("priority", r"(?:-p|--priority|!)\s*(-?\d{1,6})", "!PRIORITY", int),
        Rest("text", "the goal's text", shown="TEXT [|| CRITERION …]", parse=_goal_text, offers=EXAMPLES),
    ),
    command("drop", cmd.DropGoal, goal_id(optional=True)),
    command("abort give_up", cmd.AbortGoal, goal_id(optional=True)),
    command("reword", cmd.ChangeGoal, goal_id(), Rest("text", "the new text")),
    command("subgoal", cmd.PushGoal, goal_id(), Rest("text", "the new goal's text")),
    command(
        "under",
        cmd.MoveGoal,
        goal_id(),
        Word("parent", "the goal above it, or none,", False, "OTHER|none", _above, open_goals),
    ),
    command(
        "priority",
        cmd.ChangeGoal,
        goal_id(),
        Rest("priority", "a number", shown="NUMBER", parse=NUMBER),
        forms=(of_handoff(cc.SetPriority, Rest("priority", "a number", shown="1|2|3", parse=URGENCY)),),
        choices=lambda context: [*open_goals(context), *handoff_choices(context)],
    ),
    command(
        "mission",
        late("missions:run_mission"),
        Word("name", "a mission", offers=listed(lambda context: context.missions(), "mission")),
    ),
)
