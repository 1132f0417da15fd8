"""All that is known of a registered agent, and why one would be selected, as their dialogs show it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from app.crew_doing import Explained
from app.projection.fleet_views import lasted_s, short
from engine.agents.spec import AgentSpec
from engine.crew.state import CrewState
from engine.domain.text import clean_line
from engine.selection import Candidate, edges_of
from widgets.dialogs.long_text import Section
from widgets.dialogs.selection import CandidateRow, SelectionModel

HANDOFFS = 20
"""Handoffs of an agent that are listed, the newest."""


def card(state: CrewState, name: str, now: datetime) -> tuple[Section, ...]:
    """Spec, versions, what it takes and gives, tools, edges, what it asks, its newest handoffs."""
    one = state.agents[name]
    spec = one.spec
    used = f"{one.successes} of {one.runs} runs succeeded" if one.runs else "never run"
    off = "" if one.enabled else " · takes no work: x on the board lets it again"
    floor = " · ◆ has the floor" if state.holder == name else ""
    head = f"{spec.name} · {spec.type} {spec.version} · {used}{off}{floor}"
    sections = [
        Section(head, spec.description),
        Section(
            "Versions", "\n".join(reversed(one.versions)) + (f"\nfrom {one.source}" if one.source else "")
        ),
        Section("Receives and returns", "\n".join(_handoff_lines(spec))),
        Section("How it works", "\n".join(_work_lines(spec))),
        Section("Tools", "\n".join(_tool_lines(state, spec)) or "none"),
        Section("Edges of the selection graph", "\n".join(_edge_lines(state, name)) or "none"),
    ]
    if waiting := state.parked(name):
        told = "\n".join(f"{idea.id}: {idea.text}" for idea in waiting)
        sections.append(Section("Parked ideas", f"{told}\nidea take IDEA [AGENT] · idea drop IDEA"))
    if one.warnings:
        sections.append(Section("Warnings", "\n".join(one.warnings), "warning"))
    allowed = [
        f"{tool}: always {'allowed' if yes else 'rejected'}"
        for (who, tool), yes in state.permissions.items()
        if who == name
    ]
    if allowed:
        sections.append(Section("Permissions", "\n".join(allowed)))
    sections.append(
        Section(f"Its last {HANDOFFS} handoffs", "\n".join(_handoffs(state, name, now)) or "none")
    )
    return tuple(sections)


def _handoff_lines(spec: AgentSpec) -> Iterator[str]:
    receives, returns, routing = spec.handoff.receives, spec.handoff.returns, spec.handoff.routing
    needs = ", ".join(receives.required) or "nothing"
    yield f"needs {needs}, clear by {receives.min_clarity:g} at least"
    given = [word for word, yes in (
        ("findings", returns.key_findings), ("recommendations", returns.recommendations),
        ("confidence", returns.confidence_score), ("open questions", returns.open_questions),
        ("whom to ask next", returns.suggested_next),
    ) if yes]  # fmt: skip
    scores = f"; scores {', '.join(returns.score_names)}" if returns.score_names else ""
    yield f"gives {returns.output_format} with {', '.join(given) or 'nothing besides'}{scores}"
    yield f"hands to {', '.join(routing.can_delegate_to) or 'nobody'}"
    callers = (
        "anybody" if routing.can_be_called_by == "*" else ", ".join(routing.can_be_called_by) or "nobody"
    )
    supports = spec.handoff.supports
    kinds = [
        word
        for word, yes in (
            ("delegate", supports.delegate),
            ("transfer", supports.transfer),
            ("return", supports.return_),
            ("escalate", supports.escalate),
        )
        if yes
    ]
    yield f"is called by {callers}; takes part in {', '.join(kinds)}; answers {routing.return_behavior}"


def _work_lines(spec: AgentSpec) -> Iterator[str]:
    model = spec.model
    budget = f" ({model.thinking_budget} tokens)" if model.thinking_budget else ""
    yield f"model: {model.id or model.tier}, {model.max_tokens} tokens, thinking {model.thinking}{budget}"
    for phase in spec.phases:
        checks = ", ".join(one.check for one in phase.checkpoint.criteria)
        yield f"phase {phase.id}: {phase.name}" + (f" [{checks}]" if checks else "")
    for step in spec.steps:
        yield f"step {step.id}: {step.title} ({step.input}{'' if step.may_skip else ', required'})"
    for sub in spec.sub_agents:
        yield f"sub-agent {sub.id}: {sub.role}{' (required)' if sub.required else ''}"
    if spec.debate is not None:
        sides = ", ".join(f"{side.label} {side.agent_id} ({side.stance})" for side in spec.debate.sides)
        yield f"debate: {sides}; judge {spec.debate.judge_agent}, {spec.debate.rounds} rounds"
    if spec.compute:
        yield f"computed in code: {spec.compute}"
    for one in spec.instructions.quality_criteria:
        yield f"{'must' if one.hard else 'should'}: {one.check} {one.field}".rstrip()


def _tool_lines(state: CrewState, spec: AgentSpec) -> Iterator[str]:
    for use in spec.tools.mcp_servers:
        server = state.servers.get(use.server)
        how = ": ".join(filter(None, (server.state, server.message))) if server is not None else "not started"
        needed = "required" if use.required else "optional"
        yield f"{use.server} ({', '.join(use.tools)}): {needed}, {how}"
    for tool in spec.tools.custom_tools:
        yield f"{tool.name}: {tool.function}"
    for action in spec.tools.global_actions:
        yield f"{action.action}: {action.tool}"
    if spec.tools.local:
        yield f"local: {', '.join(spec.tools.local)}"


def _edge_lines(state: CrewState, name: str) -> Iterator[str]:
    if words := state.agents[name].spec.triggers.keywords:
        yield f"triggers: {', '.join(words)}"
    for one in state.agents.values():
        for edge in edges_of(one.spec):
            if name in (edge.src, edge.dst):
                declared = f" (declared by {one.spec.id})" if one.spec.id != name else ""
                yield f"{edge.src} -{edge.rel} {edge.value:g}→ {edge.dst}{declared}"


def _handoffs(state: CrewState, name: str, now: datetime) -> list[str]:
    found = [one for one in state.handoffs.values() if one.agent == name]
    return [
        f"{one.state.glyph} {one.id} {one.state.words} {short(lasted_s(one.moves[-1].at, now))} ago, "
        f"from {one.context.from_agent}: {clean_line(one.context.task_description, limit=90)}"
        for one in reversed(found[-HANDOFFS:])
    ]


def selection(told: Explained, text: str) -> SelectionModel:
    """Who would be selected for a text, beside what the seed's own query would have said."""
    rows = [_candidate(told, one, place) for place, one in enumerate(told.found.rows, 1)]
    rows += [_candidate(told, one.candidate, 0, one.reason) for one in told.found.lost]
    return SelectionModel(text, tuple(rows), told.standing)


def _candidate(told: Explained, one: Candidate, place: int, lost: str = "") -> CandidateRow:
    parts = (one.T, one.P, one.C, one.R)
    return CandidateRow(one.id, one.score, parts, told.seeds.get(one.id), one.why, place, lost)
