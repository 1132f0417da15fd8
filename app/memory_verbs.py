"""The words of the command bar for what agents are told and remember."""

from __future__ import annotations

import re

from app.verb import Context, GrammarError, Intent, Local, Verb, only, word
from engine.domain import commands as cmd
from engine.domain.memory import WorkflowStatus


def _write(context: Context, verb: str, **arguments: object) -> cmd.Remember:
    return cmd.Remember(agent=context.agent, verb=verb, arguments=arguments)


def _read_remember(rest: str, context: Context) -> Intent:
    if not rest:
        raise GrammarError("what is to be remembered is missing")
    return _write(
        context,
        "store_memory",
        content=rest,
        memory_type="user_input",
        memory_level="semantic",
        importance=7.0,
    )


def _memory(rest: str) -> str:
    return only(rest, "a memory such as m12")


def _in_mind(rest: str, context: Context, how: str) -> Intent:
    return _write(context, "change_working_memory", **{how: [_memory(rest)]})


def _read_focus(rest: str, context: Context) -> Intent:
    return _write(context, "focus_memory", memory_id=_memory(rest))


def _read_important(rest: str, context: Context) -> Intent:
    memory, number = word(rest, "a memory such as m12")
    if not re.fullmatch(r"\d{1,2}(\.\d{1,4})?", number) or float(number) > 10:
        raise GrammarError("a number from 0 to 10 is expected")
    return _write(context, "update_memory", memory_id=memory, importance=float(number))


def _read_forget(rest: str, context: Context) -> Intent:
    if not rest:
        raise GrammarError("a memory such as m12 is missing")
    return _write(context, "forget_memories", memory_ids=rest.split())


def _read_workflow(rest: str, context: Context) -> Intent:
    workflow, tail = word(rest, "a workflow such as w1")
    status, message = word(tail, "how it stands")
    if status not in {one.value for one in WorkflowStatus}:
        raise GrammarError(f"'{status[:40]}' is none of: {', '.join(WorkflowStatus)}")
    told = {"completion_message": message} if message else {}
    return _write(context, "update_workflow_status", workflow_id=workflow, status=status, **told)


VERBS: tuple[Verb, ...] = (
    Verb("memory", "memory [WORDS]", "look for memories by words and likeness",
         lambda rest, c: Local("memories", rest), "Memory", aliases=("memories",)),
    Verb("remember", "remember TEXT", "put something into the memory of the agent's present work",
         _read_remember, "Memory"),
    Verb("pin", "pin MEMORY", "keep a memory in mind; it is never evicted",
         lambda rest, c: _in_mind(rest, c, "pin"), "Memory"),
    Verb("unpin", "unpin MEMORY", "let a memory in mind be evicted again",
         lambda rest, c: _in_mind(rest, c, "unpin"), "Memory"),
    Verb("evict", "evict MEMORY", "take a memory out of mind; it is not forgotten",
         lambda rest, c: _in_mind(rest, c, "evict"), "Memory"),
    Verb("focus", "focus MEMORY", "bring a memory into mind and into focus", _read_focus, "Memory"),
    Verb("important", "important MEMORY 0-10", "say how much a memory matters", _read_important, "Memory"),
    Verb("forget_memory", "forget_memory MEMORY …", "forget memories; their history stays in the journal",
         _read_forget, "Memory"),
    Verb("workflow", "workflow ID active|paused|completed|failed|abandoned [WHY]",
         "say how a piece of work in memory stands", _read_workflow, "Memory"),
    Verb("meta", "meta", "what is due of the agent's own thinking, and what runs in the background",
         lambda rest, c: Local("meta", only(rest, "nothing") if rest else ""), "Mind",
         aliases=("background",)),
    Verb("context", "context", "what the thinker was told last: shares, words, cost",
         lambda rest, c: Local("context", only(rest, "nothing") if rest else ""), "Mind"),
)  # fmt: skip
