"""Commands about breakpoints, and stops with their receipts in words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from app.commands.arguments import Rest, Word, open_steps, read_step_id, split_word
from app.commands.command import Context, Form, GrammarError, Group, Show, Submit, Values, late
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core.breakpoints import ON_MIND, USAGE, BreakError, BreakKind, read_break
from engine.core.recovery import FailureKind
from engine.core.sandbox import StopGrade, StopItem, StopObserved, StopReceipt
from engine.core.text import clean_line

SWITCHES = ("on", "off", "clear")
command = Group("Steering")


def break_command(rest: str, context: Context) -> cmd.Command:
    """A breakpoint of any kind: on a step alone, on a reasoner's mind, or any other.

    Raises:
        GrammarError: it is none; the message says what is wrong and how to write it.
    """
    kind, _, tail = split_word(rest)
    reasons = context.state is not None and context.state.reasons
    if kind not in set(BreakKind):
        if reasons or not re.fullmatch(r"[sS]?\d*|this|\.", rest):
            kinds = ", ".join(BreakKind)
            raise GrammarError(f"say on what: {kinds}, such as: break error *; or name a step")
        return cmd.SetBreakpoint(agent=context.agent, step=read_step_id(rest, context))
    pattern = tail.strip()
    if reasons and kind in ON_MIND and not (kind == BreakKind.ERROR and is_failure(pattern)):
        if not pattern:
            raise GrammarError("say on what: break belief obstacle(_), break goal +!reach(X), break plan p1")
        # The pane of goals writes them as `!reach(1)`.
        pattern = pattern.removeprefix("!") if kind == BreakKind.GOAL else pattern
        return cmd.BreakOn.model_validate({"agent": context.agent, "on": kind, "pattern": pattern})
    if kind == BreakKind.STEP and re.fullmatch(r"[sS]\d+|this|\.", pattern):
        step = read_step_id(pattern, context)
        if context.state is not None and context.state.find_step(step) is not None:
            return cmd.SetBreakpoint(agent=context.agent, step=step)
    try:
        read_break(f"{kind} {pattern}")
    except BreakError as error:
        raise GrammarError(str(error)) from None
    return cmd.SetBreak(agent=context.agent, line=f"{kind} {pattern}".strip())


def is_failure(pattern: str) -> bool:
    """Whether a pattern of an error means kinds of failures, and not ids of a reasoner's errors."""
    first = pattern.split(" ", 1)[0].rstrip("*")
    return bool(first) and any(kind.startswith(first) for kind in FailureKind)


def _break(context: Context, values: Values) -> cmd.Command:
    return break_command(values.get("where", ""), context)


def _switch(context: Context, values: Values) -> cmd.Command:
    """Turn a breakpoint on or off, or clear it."""
    how = values["how"]
    return cmd.ChangeBreak(
        agent=context.agent, breakpoint=values["breakpoint"], enabled=how != "off", cleared=how == "clear"
    )


def _breakpoints(context: Context) -> Iterable[tuple[str, str]]:
    state = context.state
    return (
        [(ident, "") for ident in (*state.mind_breakpoints, *state.points, *state.breakpoints)]
        if state
        else []
    )


def _breakable(context: Context) -> Iterable[tuple[str, str]]:
    state = context.state
    steps = open_steps(context)
    yield from steps[:1]
    for kind, (usage, what, example) in USAGE.items():
        if kind is not BreakKind.INTENTION or (state is not None and state.reasons):
            yield f"{kind} ", f"{usage}: {what}, such as {kind} {example}"
    yield "dry ", "how often one would have held the agent: dry KIND … [last N]"
    yield from steps[1:]


BREAKPOINT = Word("breakpoint", "a breakpoint", shown="ID", offers=_breakpoints)
WHERE = "[STEP] | break KIND … [when CONDITION] [after N] [once]"
DRY = "what to try, such as: break dry error *, break dry belief tests_green true->false,"
COMMANDS = (
    command(
        "break",
        Submit(_break),
        Rest("where", "a step or a kind", optional=True, shown=WHERE, offers=_breakable),
        forms=(
            Form(
                Show(late("inbox:dry_run"), "dry_run"),
                (Rest("line", DRY, shown="KIND … [last N]"),),
                word="dry",
            ),
            *(Form(Submit(_switch, {"how": how}), (BREAKPOINT,), word=how) for how in SWITCHES),
        ),
    ),
    command("breaks", Show(late("inbox:show_breakpoints"), "breakpoints")),
    command(
        "unbreak",
        Submit(cmd.SetBreakpoint, {"on": False}),
        Word("step", "a step", True, "[STEP|ID]", read_step_id, open_steps, lambda c: read_step_id("", c)),
        forms=(Form(Submit(_switch, {"how": "clear"}), (BREAKPOINT,), when=r"b\d+\Z"),),
    ),
)


GRADES: dict[StopGrade, tuple[str, str]] = {
    StopGrade.AFTER: ("after this step", "let the present step end, then hold"),
    StopGrade.HOLD: ("hold now", "start nothing new; what runs ends by itself"),
    StopGrade.CUT: ("cut the model", "hold, and cut the model's answer off"),
    StopGrade.CANCEL: ("cancel the tool", "hold, and cancel the call; its step runs again"),
    StopGrade.FREEZE: ("freeze", "hold, and stop all processes where they are"),
    StopGrade.KILL: ("kill", "end all: calls, jobs, your shell, whole trees"),
}
"""The grades with a name and what each does, from the least."""
STOP_SCOPES = {"agent": "this agent", "children": "and its children", "all": "all agents"}
_DONE = {
    StopGrade.AFTER: "held after this step",
    StopGrade.HOLD: "held",
    StopGrade.CUT: "held, the model cut off",
    StopGrade.CANCEL: "held, the tool cancelled",
    StopGrade.FREEZE: "frozen",
    StopGrade.KILL: "stopped",
}
NAMES_SHOWN = 4


def stop_headline(receipt: StopReceipt) -> str:
    """The result of a stop, in a line."""
    agent = clean_line(receipt.agent, limit=40)
    if not receipt.complete:
        return f"{agent} is being stopped: not all is dead after {receipt.took_ms} ms"
    if not receipt.changed:
        return f"{agent}: nothing changed, all of this was stopped already"
    return f"{agent} {_DONE[receipt.grade]}, seen after {receipt.took_ms} ms"


def item_line(item: StopItem) -> str:
    """One thing that a stop met, in a line."""
    name = f"{item.kind} {clean_line(item.name, limit=40)}".strip()
    took = f", {item.took_ms} ms" if item.took_ms else ""
    return f"{item.fate}: {name} {clean_line(item.what, limit=80)}{_processes(item)}{took}"


def _processes(item: StopItem) -> str:
    if not item.processes:
        return ""
    names = [clean_line(name, limit=24) for name in item.names]
    shown = list(dict.fromkeys(names))[:NAMES_SHOWN]
    more = " …" if len(set(names)) > NAMES_SHOWN or item.processes > len(names) else ""
    count = f"{item.processes} process{'es' * (item.processes != 1)}"
    named = f" ({', '.join(shown)}{more})" if shown else ""
    return f" · {count}{named}"


def receipt_rows(receipt: StopReceipt) -> list[tuple[str, str]]:
    """The receipt line by line, each with the style of its line (see `widgets.base.line_pane`)."""
    running = [("warning", f"  ▶ still runs, {item_line(item)}") for item in receipt.running]
    return [
        ("strong" if receipt.complete else "warning", stop_headline(receipt)),
        *(("success", f"  ■ {item_line(item)}") for item in receipt.stopped),
        *(running or [("dim", "    still runs: nothing")]),
    ]


def receipt_text(receipts: Iterable[StopReceipt]) -> str:
    """Receipts as plain text."""
    return "\n".join(text for receipt in receipts for _, text in receipt_rows(receipt))


async def stop_answer(
    engine: WorkspaceEngine, data: dict[str, Any], message: str
) -> tuple[dict[str, Any], str]:
    """The last receipts of a stop as JSON and as text, once all is dead that was to die."""
    await engine.stopped()
    states = [await engine.view(each["agent"]) for each in data["receipts"]]
    receipts = [state.stop_receipt for state in states if state.stop_receipt is not None]
    answer = {
        "changed": any(receipt.changed for receipt in receipts),
        "complete": all(receipt.complete for receipt in receipts),
        "receipts": [
            StopObserved(receipt=receipt).model_dump(mode="json")["receipt"] for receipt in receipts
        ],
    }
    return answer, f"{message}\n{receipt_text(receipts)}"
