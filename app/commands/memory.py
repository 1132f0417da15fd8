"""Commands about what agents remember, keep in mind and forget."""

from __future__ import annotations

from collections.abc import Callable

from app.commands.arguments import Rest, Word, among, matching
from app.commands.command import Context, Group, Show, Submit, Values
from engine.core import commands as cmd
from engine.core.memory import WorkflowStatus

command = Group("Memory")
MEMORY = Word("memory", "a memory such as m12")


def write(verb: str, arguments: Callable[[Values], dict[str, object]]) -> Submit:
    """Sends one call of the memory's interface.

    Args:
        verb: of the memory's interface.
        arguments: its arguments, of what was given.
    """

    def make(context: Context, values: Values) -> cmd.Remember:
        return cmd.Remember(agent=context.agent, verb=verb, arguments=arguments(values))

    return Submit(make)


def _in_mind(how: str) -> Submit:
    return write("change_working_memory", lambda values: {how: [values["memory"]]})


def _workflow(values: Values) -> dict[str, object]:
    named = {"workflow_id": values["workflow"], "status": values["status"]}
    return {**named, "completion_message": values["why"]} if "why" in values else named


def _operators(values: Values) -> dict[str, object]:
    kind = {"memory_type": "user_input", "memory_level": "semantic", "importance": 7.0}
    return {"content": values["content"], **kind}


def _importance(values: Values) -> dict[str, object]:
    return {"memory_id": values["memory"], "importance": values["importance"]}


IMPORTANCE = matching(r"0?\d(\.\d{1,4})?|10(\.0{1,4})?", "a number from 0 to 10 is expected", float)
STATUS = among(list(WorkflowStatus), f"'{{}}' is none of: {', '.join(WorkflowStatus)}")
MEMORIES = Rest(
    "memories", "a memory such as m12", shown="MEMORY …", parse=lambda text, _context: text.split()
)
COMMANDS = (
    command(
        "memory memories",
        "look for memories by words and likeness",
        Show(view="memories"),
        Rest("query", "words", optional=True, shown="WORDS", default=""),
    ),
    command(
        "remember",
        "put something into the memory of the agent's present work",
        write("store_memory", _operators),
        Rest("content", "what is to be remembered", shown="TEXT"),
    ),
    command("pin", "keep a memory in mind; it is never evicted", _in_mind("pin"), MEMORY),
    command("unpin", "let a memory in mind be evicted again", _in_mind("unpin"), MEMORY),
    command("evict", "take a memory out of mind; it is not forgotten", _in_mind("evict"), MEMORY),
    command(
        "focus",
        "bring a memory into mind and into focus",
        write("focus_memory", lambda values: {"memory_id": values["memory"]}),
        MEMORY,
    ),
    command(
        "important",
        "say how much a memory matters",
        write("update_memory", _importance),
        *(MEMORY, Rest("importance", "a number from 0 to 10", shown="0-10", parse=IMPORTANCE)),
    ),
    command(
        "forget_memory",
        "forget memories; their history stays in the journal",
        write("forget_memories", lambda values: {"memory_ids": values["memories"]}),
        MEMORIES,
    ),
    command(
        "workflow",
        "say how a piece of work in memory stands",
        write("update_workflow_status", _workflow),
        Word("workflow", "a workflow such as w1", shown="ID"),
        Word("status", "how it stands", shown="|".join(WorkflowStatus), parse=STATUS),
        Rest("why", "a reason", optional=True),
    ),
)
