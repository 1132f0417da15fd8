"""Commands about what agents remember, keep in mind and forget."""

from __future__ import annotations

import re
from collections.abc import Callable

from app.commands.arguments import Rest, Word, among, matching
from app.commands.command import Context, Group, Show, Submit, Values, late
from engine.agent.steering.left_out import left_out
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


def _unpin(context: Context, values: Values) -> cmd.Command:
    what = values["memory"]
    if what in dict(_back(context)):
        return cmd.ReleaseContext(agent=context.agent, what=what)
    return _in_mind("unpin").command(context, values)


def _restore(context: Context, values: Values) -> cmd.Command:
    what = values["what"]
    known = context.state.beliefs if context.state is not None else {}
    if re.fullmatch(r"m\d+", what) and what not in known:
        return _in_mind("pin").command(context, {"memory": what})
    return cmd.RestoreContext(agent=context.agent, what=what)


def _back(context: Context) -> list[tuple[str, str]]:
    back = context.state.restored if context.state is not None else ()
    return [(each.what, f"{each.about}, about {each.tokens:,} tokens") for each in back]


def _left_out(context: Context) -> list[tuple[str, str]]:
    dropped = left_out(context.state) if context.state is not None else ()
    return [(each.what, each.about) for each in dropped if each.what]


def _embedders(_context: Context) -> list[tuple[str, str]]:
    return [("minilm", "a small model of this machine, for English"), ("none", "words alone")]


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
        Show(view="memories"),
        Rest("query", "words", optional=True, shown="WORDS", default=""),
    ),
    command(
        "remember",
        write("store_memory", _operators),
        Rest("content", "what is to be remembered", shown="TEXT"),
    ),
    command(
        "embedder",
        Show(late("embedder:embedder"), changes=True),
        Word(
            "what",
            "minilm, none or an address",
            optional=True,
            shown="minilm|none|URL",
            default="",
            offers=_embedders,
        ),
        Word("model", "the endpoint's model", optional=True, default=""),
        in_engine=True,
    ),
    command("pin", _in_mind("pin"), MEMORY),
    command(
        "unpin",
        Submit(_unpin),
        Word("memory", "a memory such as m12, or what was brought back", shown="MEMORY|WHAT", offers=_back),
    ),
    command(
        "restore_context",
        Submit(_restore),
        Word("what", "an action, a belief or a memory", shown="ACTION|BELIEF|MEMORY", offers=_left_out),
    ),
    command("evict", _in_mind("evict"), MEMORY),
    command("focus", write("focus_memory", lambda values: {"memory_id": values["memory"]}), MEMORY),
    command(
        "important",
        write("update_memory", _importance),
        *(MEMORY, Rest("importance", "a number from 0 to 10", shown="0-10", parse=IMPORTANCE)),
    ),
    command(
        "forget_memory", write("forget_memories", lambda values: {"memory_ids": values["memories"]}), MEMORIES
    ),
    command(
        "workflow",
        write("update_workflow_status", _workflow),
        Word("workflow", "a workflow such as w1", shown="ID"),
        Word("status", "how it stands", shown="|".join(WorkflowStatus), parse=STATUS),
        Rest("why", "a reason", optional=True),
    ),
)
