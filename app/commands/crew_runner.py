"""What commands for a crew do without a screen: work is followed to its end; lists; previews."""

from __future__ import annotations

import asyncio
from typing import Any

from app.commands.command import Answer, CommandHost, Request, Values
from app.commands.crew_arguments import RUNS
from app.commands.preview import default_preview, fields_of, refused_preview
from app.projection.improve_text import Preview
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import crew_commands as cc
from engine.core.text import clean, clean_line
from engine.crew.builds import builds_of
from engine.crew.command_handlers import without_model
from engine.crew.crew import Crew
from engine.crew.handoffs.contexts import read_sources
from engine.crew.ontology.context import ORCHESTRATOR
from engine.crew.ontology.kinds import ErrorCode, HandoffState
from engine.crew.ports import HandoffError
from engine.crew.selection import Selection, Signal
from engine.crew.state import CrewState, Handoff, Idea
from engine.crew.thinker.prompt import context_prompt
from engine.value import dataclass

RESTS = (HandoffState.WAITING_HUMAN, HandoffState.PAUSED)
_AT_ONCE = cc.CancelHandoff | cc.SetPriority | cc.StepMode
"""What is done when it is said; nothing is waited for."""
CANDIDATES = 8
"""Agents that a selection lists."""


# ------------------------------------------------------------------ commands


async def run_crew_command(engine: WorkspaceEngine, command: cc.ForCrew, operator: str = "cli") -> Answer:
    """Carry a command out without a screen; work that it begins is waited for.

    Exit code 0 when it ended well, 1 when not, 3 when it waits for the operator. Being cut off cancels it.
    """
    crew = await engine.crew()
    asked, waits = set(crew.state.requests), not isinstance(command, _AT_ONCE)
    sending = asyncio.ensure_future(engine.submit(command, operator=operator))
    try:
        receipt = await asyncio.shield(sending)
        handoff, group = (str(receipt.data.get(name, "")) for name in ("handoff", "group"))
        waits = waits and receipt.ok and bool(handoff or group)
        if waits:
            await _settled(crew, handoff, group)
    except asyncio.CancelledError:
        begun = (await sending).data if waits else {}
        group = str(begun.get("group", ""))
        together = crew.state.groups[group].handoffs if group in crew.state.groups else ()
        for name in [begun["handoff"]] if begun.get("handoff") else together:
            cancel = cc.CancelHandoff(handoff=name, reason="cut off at the command line")
            await asyncio.shield(engine.submit(cancel, operator=operator))
        raise
    answer = {**receipt.data, "ok": receipt.ok, "message": receipt.message, "event": receipt.event}
    waiting = frozenset(entry.server for entry in engine.servers.asked) if engine.servers else frozenset()
    if waits:
        return _ended(crew.state, handoff, group, asked, waiting, answer)
    refused = crew.state.handoffs.get(handoff) if not receipt.ok else None
    leave = refused is not None and _wants_leave(refused, waiting)
    return (0 if receipt.ok else 3 if leave else 1), answer, receipt.message


async def _settled(crew: Crew, handoff: str, group: str) -> None:
    """Wait until work is over, or nothing of it can continue without the operator."""
    while True:
        news = asyncio.create_task(crew.stream.changed())
        try:
            if _at_rest(crew.state, handoff, group):
                return
            await news
        finally:
            news.cancel()


def _at_rest(state: CrewState, handoff: str, group: str) -> bool:
    if group:
        together = state.groups[group]
        members = [state.handoffs[each] for each in together.handoffs if each in state.handoffs]
        # Between two members of a sequence none is open.
        waits = any(member.open for member in members) and all(_rests(state, member) for member in members)
        return bool(together.ended) or waits
    return _rests(state, state.handoffs[handoff])


def _rests(state: CrewState, handoff: Handoff) -> bool:
    """Whether a handoff is over, or it and all that it handed over wait for the operator."""
    if not handoff.open or handoff.state in RESTS:
        return True
    below = [each for each in state.children(handoff.id) if each.open]
    return bool(below) and all(_rests(state, each) for each in below)


def _ended(
    state: CrewState,
    handoff: str,
    group: str,
    asked: set[str],
    waiting: frozenset[str],
    answer: dict[str, Any],
) -> Answer:
    code, lines, results = _group_end(state, group) if group else _handoff_end(state, handoff)
    members = state.groups[group].handoffs if group else [handoff]
    begun = [state.handoffs[name] for name in members if name in state.handoffs]
    if code and any(_wants_leave(each, waiting) for each in begun):
        code = 3
    requests = [request for request in state.open_requests() if request.id not in asked]
    lines = [str(answer["message"]), *lines]
    for request in requests:
        options = "  ".join(f"{at} {option.label}" for at, option in enumerate(request.options, 1))
        # The checks of what has ended stand above it.
        question = request.question if request.blocking else request.question.partition("\n")[0]
        lines.append(f"? {request.id} {request.agent_id}: {question} {options}".rstrip())
    asks = [request.model_dump(mode="json") for request in requests]
    answer |= {**results, "ok": code == 0, "requests": asks}
    return code, answer, clean("\n".join(filter(None, lines)))


def _group_end(state: CrewState, name: str) -> tuple[int, list[str], dict[str, Any]]:
    """Exit code, lines and JSON of work that several were given."""
    group = state.groups[name]
    members = [state.handoffs[member] for member in group.handoffs if member in state.handoffs]
    code = int(not group.ok) if group.ended else 3
    lines = [result_text(member) for member in members]
    lines += [group.message, group.output] if group.ended else []
    results = [member.result.model_dump(mode="json") for member in members if member.result is not None]
    usage = state.spent(name).model_dump(mode="json")
    return code, lines, {"results": results, "output": group.output, "code": group.code, "usage": usage}


def _handoff_end(state: CrewState, name: str) -> tuple[int, list[str], dict[str, Any]]:
    """Exit code, lines and JSON of one handoff."""
    handoff = state.handoffs[name]
    code = 3 if handoff.open else int(handoff.state is not HandoffState.COMPLETED)
    result = {} if handoff.result is None else {"result": handoff.result.model_dump(mode="json")}
    usage = state.spent(name).model_dump(mode="json")
    return code, [result_text(handoff)], {"state": handoff.state.value, "usage": usage, **result}


def _wants_leave(handoff: Handoff, waiting: frozenset[str]) -> bool:
    """Whether a handoff was refused because a server that it needs waits for the operator's leave."""
    result, spec = handoff.result, handoff.spec
    if result is None or result.error_code is not ErrorCode.TOOL_UNAVAILABLE or spec is None:
        return False
    return any(use.required and use.server in waiting for use in spec.tools.mcp_servers)


def result_text(handoff: Handoff) -> str:
    """How a handoff stands, and its result."""
    head = f"{handoff.state.glyph} {handoff.id} {handoff.agent} {handoff.state.words}"
    result = handoff.result
    if result is None:
        return f"{head} {handoff.note}".rstrip()
    if result.error is not None:
        head = f"{head} {result.error_code or ''}: {result.end}"
    return "\n".join(
        filter(None, (head, *result.failures, result.output, *(f"- {each}" for each in result.key_findings)))
    )


# ------------------------------------------------------------------ answers


async def show_agents(host: CommandHost, values: Values) -> Answer:
    """The registered agents, with their ended runs where these are asked for."""
    crew, which = await host.engine.crew(), values.get("which")
    state, builds = crew.state, builds_of(crew)
    rows, lines = [], []
    for name, entry in state.agents.items():
        spec = entry.spec
        row = {"id": name, "type": spec.type.value, "version": spec.version, "floor": state.holder == name}
        names = ("enabled", "successes", "runs", "source")
        rows.append(row | {each: getattr(entry, each) for each in names})
        used = f"{entry.successes}/{entry.runs}" if entry.runs else "-"
        about = clean_line(spec.description, limit=80)
        off = "" if entry.enabled else "off · "
        floor = "◆" if state.holder == name else " "
        lines.append(f"{floor} {name:<24} {spec.type.badge} {spec.version:<9} {used:>7} {off}{about}")
    answer: dict[str, Any] = {"agents": rows, "floor": state.holder if state.holder != ORCHESTRATOR else ""}
    if builds is not None and builds.troubles:
        answer["broken"] = builds.troubles
        lines += [f"  {name:<24} {clean_line(why)}" for name, why in builds.troubles.items()]
    worked = [handoff for handoff in state.handoffs.values() if handoff.run and not handoff.proof]
    if which == RUNS:
        answer["runs"] = [
            {"id": each.run, "agent": each.agent, "handoff": each.id, "state": each.state.value}
            for each in worked
        ]
        lines += [f"  {each.run:<31} {each.state.glyph} {each.state.words:<10} {each.id}" for each in worked]
    elif over := sum(not each.open for each in worked):
        lines.append(f"{over:,} ended run{'' if over == 1 else 's'}: agents {RUNS}, or handoffs")
    return 0, answer, "\n".join(lines) or "no agent is registered yet"


async def show_ideas(host: CommandHost, values: Values) -> Answer:
    """The ideas that an agent has parked, or all."""
    state, agent = (await host.engine.crew()).state, values["agent"]
    ideas = [idea for idea in state.ideas.values() if agent in ("", idea.agent)]
    names = ("id", "agent", "handoff", "text", "at", "state", "to")
    rows = [{name: getattr(idea, name) for name in names} for idea in ideas]
    lines = map(_idea_text, sorted(ideas, key=lambda idea: idea.state != "parked"))
    none = f"{agent} has parked no idea" if agent else "no idea is parked"
    return 0, {"ideas": rows}, "\n".join(lines) or none


def _idea_text(idea: Idea) -> str:
    """An idea, and its state."""
    became = "" if idea.state == "parked" else f" [{idea.state}{f': {idea.to}' if idea.to else ''}]"
    return f"{idea.id} {idea.agent}{became}: {clean_line(idea.text, limit=2_000)}"


async def show_handoffs(host: CommandHost, values: Values) -> Answer:
    """The handoffs whose ids begin so; one alone in full."""
    state, begin = (await host.engine.crew()).state, values["handoff"] or ""
    handoffs = [
        handoff
        for name, handoff in state.handoffs.items()
        if name.startswith(begin) and (begin or not handoff.proof)
    ]
    if begin and len(handoffs) == 1:
        handoff = handoffs[0]
        answer = {
            "handoff": handoff.id,
            "state": handoff.state.value,
            "context": handoff.context.model_dump(mode="json"),
            "prompt": context_prompt(handoff.context),
            "result": handoff.result.model_dump(mode="json") if handoff.result is not None else None,
            "usage": state.spent(handoff.id).model_dump(mode="json"),
        }
        return 0, answer, result_text(handoff)
    rows = [
        {"id": each.id, "agent": each.agent, "state": each.state.value, "parent": each.context.parent_id}
        for each in handoffs
    ]
    lines = [
        f"{each.id:<16} {each.agent:<24} {each.state.glyph} {each.state.words:<10} "
        f"{clean_line(each.context.task_description, limit=80)}"
        for each in handoffs
    ]
    return 0, {"handoffs": rows}, "\n".join(lines) or "nothing was handed over yet"


# ------------------------------------------------------------------ who would be selected


@dataclass(frozen=True, slots=True)
class SelectionExplanation:
    """Who would be selected for a text, and why."""

    signal: Signal
    """What of the text counted."""
    selection: Selection

    @property
    def standing(self) -> str:
        """What counted, and where the text goes."""
        words = ", ".join(self.signal.triggers) or "no trigger"
        done = f"; finished: {', '.join(self.signal.previous)}" if self.signal.previous else ""
        route = self.selection.route
        where = f"it goes to {route}" if self.selection.rows else f"nothing fits: {route} clarifies"
        return clean_line(f"{words}{done} · {where}")


def explain_selection(crew: Crew, text: str) -> SelectionExplanation:
    """Ask the selection graph, as the manager does."""
    return SelectionExplanation(*crew.selective.select(text, limit=CANDIDATES))


async def show_selection(host: CommandHost, values: Values) -> Answer:
    """Which agent fits a text, with the parts of each score."""
    explained = explain_selection(await host.engine.crew(), values["text"])
    lines, rows = [explained.standing], []
    for row in explained.selection.rows:
        rows.append({"agent": row.id, "score": row.score, **row.parts, "why": list(row.why)})
        shown = "  ".join(f"{name} {value:.4g}" for name, value in row.parts.items())
        lines.append(f"{row.score:<9g} {row.id:<24} {shown}  {' '.join(row.why)}")
    lost = [{"agent": each.id, "reason": each.lost} for each in explained.selection.lost]
    lines += [f"{'-':<9} {each['agent']:<24} {each['reason']}" for each in lost]
    answer = {
        "rows": rows,
        "lost": lost,
        "route": explained.selection.route,
        "triggers": list(explained.signal.triggers),
    }
    return 0, answer, "\n".join(lines)


# ------------------------------------------------------------------ previews

BEGINS_WORK = (cc.Delegate, cc.Sequence, cc.Parallel, cc.Select, cc.Debate, cc.RetryHandoff)
_UNDO = {
    "crew_transfer": "yes: take back",
    "crew_pause": "yes: resume HANDOFF",
    "crew_resume": "yes: pause HANDOFF",
    "crew_priority": "yes: set it again",
    "crew_step_mode": "yes: set it again",
    "crew_enable": "yes: agent_enable, agent_disable",
    "crew_cancel": "no: retry HANDOFF hands the same over anew",
}


async def preview_crew(host: CommandHost, request: Request) -> Preview:
    """What a command to the crew would do."""
    command, crew, model = request.sends, request.context.crew, host.engine.model_name
    if not isinstance(command, cc.ForCrew):
        return await default_preview(host, request)
    if not model and crew is not None and (why := without_model(crew, command)):
        return refused_preview(request.line, why)
    facts = dict(fields_of(command, ""))
    if isinstance(command, cc.Bringing) and command.sources and crew is not None:
        try:
            texts = await read_sources(command.sources, crew, host.engine.root)
        except HandoffError as error:
            return refused_preview(request.line, error.message)
        facts["sources"] = ", ".join(
            f"{clean_line(name)} ({len(text):,} characters)" for name, text in texts.items()
        )
    if isinstance(command, cc.Debate):
        facts["cost"] = "one call for each side and each round with the openings, and two for the judge"
    if isinstance(command, BEGINS_WORK):
        facts["model"] = model or "none is set; only what can be computed is done"
        facts["asks"] = "where an agent needs you; answer REQUEST, or F"
    undo = "cancel HANDOFF ends it with all that it handed over"
    facts["undo"] = undo if isinstance(command, BEGINS_WORK) else _UNDO.get(command.do, "no")
    return Preview(request.line, request.command.help, tuple(facts.items()))
