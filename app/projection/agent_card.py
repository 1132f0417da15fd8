"""All that is known of a registered agent, and why one would be selected, as their dialogs show it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from app.projection.fleet_views import seconds_since
from engine.core.text import clean_line, short_duration
from engine.crew.ontology.spec import AgentSpec
from engine.crew.selection import Candidate, Selection, chains_of
from engine.crew.state import CrewState
from widgets.base.facts import ListModel, Section
from widgets.base.rows import Row, blank
from widgets.base.text_layout import Piece, bar, cut_text

BAR_CELLS = 5
NOTHING_FITS = "Nothing speaks for any agent: it has to become clear first what is wanted."
HANDOFFS = 20
"""Handoffs of an agent that are listed, the newest."""


def card(state: CrewState, name: str, now: datetime) -> tuple[Section, ...]:
    """Spec, source, what it takes and gives, tools, edges, what it asks, its newest handoffs."""
    agent = state.agents[name]
    spec = agent.spec
    used = f"{agent.successes} of {agent.runs} runs succeeded" if agent.runs else "never run"
    off = "" if agent.enabled else " · takes no work: x on the board lets it again"
    floor = " · ◆ has the floor" if state.holder == name else ""
    head = f"{spec.name} · {spec.type} {spec.version} · {used}{off}{floor}"
    sections = [
        Section(head, spec.description),
        Section("Source", agent.source or "unknown"),
        Section("Receives and returns", "\n".join(_handoff_lines(spec))),
        Section("How it works", "\n".join(_work_lines(spec))),
        Section("Tools", "\n".join(_tool_lines(spec)) or "none"),
        Section("Edges of the selection graph", "\n".join(_edge_lines(state, name)) or "none"),
    ]
    if waiting := state.parked(name):
        ideas = "\n".join(f"{idea.id}: {idea.text}" for idea in waiting)
        sections.append(Section("Parked ideas", ideas))
    if agent.warnings:
        sections.append(Section("Warnings", "\n".join(agent.warnings), "warning"))
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
    gives = {
        "findings": returns.key_findings,
        "recommendations": returns.recommendations,
        "confidence": returns.confidence_score,
        "open questions": returns.open_questions,
        "whom to ask next": returns.suggested_next,
    }
    given = [word for word, yes in gives.items() if yes]
    scores = f"; scores {', '.join(returns.score_names)}" if returns.score_names else ""
    yield f"gives {returns.output_format} with {', '.join(given) or 'nothing besides'}{scores}"
    yield f"hands to {', '.join(routing.can_delegate_to) or 'nobody'}"
    named = routing.can_be_called_by
    callers = "anybody" if named == "*" else ", ".join(named) or "nobody"
    names = ("delegate", "transfer", "return_", "escalate")
    kinds = [name.rstrip("_") for name in names if getattr(spec.handoff.supports, name)]
    yield f"is called by {callers}; takes part in {', '.join(kinds)}; answers {routing.return_behavior}"


def _work_lines(spec: AgentSpec) -> Iterator[str]:
    model = spec.model
    budget = f" ({model.thinking_budget} tokens)" if model.thinking_budget else ""
    yield f"model: {model.id or model.tier}, {model.max_tokens} tokens, thinking {model.thinking}{budget}"
    for phase in spec.phases:
        checks = ", ".join(criterion.check for criterion in phase.checkpoint.criteria)
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
    for criterion in spec.instructions.quality_criteria:
        yield f"{'must' if criterion.hard else 'should'}: {criterion.check} {criterion.field}".rstrip()


def _tool_lines(spec: AgentSpec) -> Iterator[str]:
    for use in spec.tools.mcp_servers:
        yield f"{use.server} ({', '.join(use.tools)}): {'required' if use.required else 'optional'}"
    if spec.tools.local:
        yield f"local: {', '.join(spec.tools.local)}"


def _edge_lines(state: CrewState, name: str) -> Iterator[str]:
    if words := state.agents[name].spec.triggers.keywords:
        yield f"triggers: {', '.join(words)}"
    for agent in state.agents.values():
        for (before, after), weight in chains_of(agent.spec).items():
            if name in (before, after):
                declared = f" (declared by {agent.spec.id})" if agent.spec.id != name else ""
                yield f"{before} -CHAINS_TO {weight:g}→ {after}{declared}"


def _handoffs(state: CrewState, name: str, now: datetime) -> list[str]:
    handoffs = [handoff for handoff in state.handoffs.values() if handoff.agent == name]
    ages = {handoff.id: seconds_since(handoff.moves[-1].at, now) for handoff in handoffs}
    return [
        f"{handoff.state.glyph} {handoff.id} {handoff.state.words} {short_duration(ages[handoff.id])}"
        f" ago, from {handoff.context.from_agent}: {clean_line(handoff.context.task_description, limit=90)}"
        for handoff in reversed(handoffs[-HANDOFFS:])
    ]


def selection(text: str, result: Selection, standing: str) -> ListModel:
    """Who would be selected for a text.

    Args:
        text: what is to be done.
        result: of the selection graph.
        standing: what of the text counted, and where it goes.
    """
    rows = [Row("standing", (Piece(clean_line(standing), "dim"),), selectable=False, most=4), blank("blank")]
    rows += [line for place, row in enumerate(result.rows, 1) for line in _candidate(row, place)]
    rows += [line for loser in result.lost for line in _candidate(loser, 0)]
    if len(rows) == 2:
        rows.append(Row("none", (Piece(NOTHING_FITS, "dim"),), selectable=False, most=2))
    return ListModel(f"Select: {clean_line(text, limit=90)}", rows)


def _candidate(candidate: Candidate, place: int) -> Iterator[Row]:
    """The candidate with the parts of its score; below it a sentence for each, and why it lost."""
    pieces = [
        Piece(f"{place or '·':>2} ", "dim"),
        Piece(f"{cut_text(clean_line(candidate.id), 18):<18} ", "strong" if place else "dim"),
        Piece(f"{candidate.score:7.4g} "),
    ]
    for name, part, most in (("T", candidate.T, 0.6), ("P", candidate.P, 0.4), ("C", candidate.C, 0.3)):
        pieces += [Piece(f"{name} ", "dim"), *bar(part / most, BAR_CELLS, style="accent"), Piece(" ")]
    for name, part in (("R", candidate.R), ("W", candidate.W), ("L", candidate.L)):
        style = "success" if part > 0 else "error" if part < 0 else "dim"
        pieces.append(Piece(f"{name} {part:+.3f} ", style))
    sentences = [clean_line(sentence, limit=600) for sentence in (*candidate.why, candidate.lost) if sentence]
    copy = " ".join((clean_line(candidate.id), f"{candidate.score:.6g}", *sentences))
    yield Row(candidate.id, tuple(pieces), copy=copy)
    for at, words in enumerate(sentences):
        pair = (Piece("   "), Piece(words, "dim"))
        yield Row(f"{candidate.id} {at}", pair, selectable=False, indent=3, most=3)
