"""View models of the panes: pure functions of one agent's state.

How many things wait for the operator, for the header: what the inbox would list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from app.projection import agent_views as mind_views
from app.projection.agent_views import open_failures
from app.projection.event_lines import call_text, step_text, strategy_text, thinker_name
from engine.core.actions import SandboxSession
from engine.core.agents import HELD_MODES, Health, Mode, recording_of
from engine.core.breakpoints import BreakKind
from engine.core.folds.approvals import call_of_step
from engine.core.goals import Goal
from engine.core.improvement import MastermindState
from engine.core.plan import Plan, PlanStep, StepStatus
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.inquiry.drift import DeviationKind
from engine.inquiry.inbox import needs_of, needs_of_system
from engine.inquiry.waiting import WaitKind, waiting_for
from engine.memory.metacognition.runner import SLOTS
from engine.sandbox.policy import Tier
from engine.sandbox.tier import PROMISES, SandboxReport
from widgets.base.facts import Fact, ListModel
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, cut_text
from widgets.dialogs.turn import HandoverModel, InterventionModel, Offer
from widgets.panes.beliefs import entry_row, memory_rows
from widgets.panes.goals import AgentMark, agent_row, goal_row, stacked
from widgets.panes.plan import PlanModel, StepLine, StepMark
from widgets.panes.status_bar import StatusModel

BELIEFS_SHOWN = 40
DEEPEST = 7
"""Sub-goals below this many goals are not indented further."""
RESULTS_SHOWN = 5
POINT_CELLS = 28
"""Cells of the status line that the running action may take."""
HELD_CELLS = 44
"""Cells of the status line for the breakpoint that holds the agent."""

# ------------------------------------------------------------------ goals and agents


_AGENT_MARKS: dict[Mode, AgentMark] = {
    **dict.fromkeys((Mode.SHELL, Mode.TIMED_OUT, Mode.PAUSED, Mode.FROZEN), "paused"),
    **dict.fromkeys((Mode.RUNNING, Mode.IDLE, Mode.STEPPING), "running"),
}
ENDED_SHOWN = 200
"""Goals that have ended, with those below them, that the goal stack shows."""
_ROWS: dict[str, tuple[str, bool, Row]] = {}
"""The row of each agent that was made last, of which head of its stream, and whether it was selected."""


def goal_stack(
    states: Iterable[AgentState], selected: str, faulty: Collection[str] = (), over: int | None = None
) -> ListModel:
    """The selected agent's goals, and the agents below them.

    Args:
        states: of all agents.
        selected: the agent that is shown.
        faulty: agents that never run in this session.
        over: how many runs have handed their work back, ever; by default those among the states. They stand
            in one line; runs that only prove a new agent stand nowhere.
    """
    known = [state for state in states if state.agent_id == selected or not state.proves]
    ended = [state for state in known if state.handed_back]
    over = len(ended) if over is None else over
    known = [state for state in known if state.agent_id == selected or not state.handed_back]
    chosen = next((state for state in known if state.agent_id == selected), None)
    agents = [
        agent_row(state.agent_id, "stopped", "fault", selected=state.agent_id == selected)
        if state.agent_id in faulty
        else _agent(state, state.agent_id == selected)
        for state in known
    ]
    goals = list(_goals(chosen)) if chosen else []
    intentions = mind_views.intention_rows_of(chosen) if chosen else []
    held = sum(view.state == "suspended" for view in chosen.intentions.values()) if chosen else 0
    return ListModel(
        rows=stacked(goals, intentions, agents, over), caption=f"{held} suspended" if held else ""
    )


def _goals(state: AgentState) -> Iterable[Row]:
    """Open goals first, then ended ones, the newest first; sub-goals under their parent."""
    roots = state.root_goals()
    ended = [goal for goal in roots if goal.status.terminal]
    older = len(ended) - ENDED_SHOWN
    for root in [goal for goal in roots if not goal.status.terminal] + ended[: -ENDED_SHOWN - 1 : -1]:
        yield from _tree(state, root, "", 0)
    if older > 0:
        text = f"… {older:,} older: search WORDS finds them"
        yield Row("older", (Piece(text, "dim"),), selectable=False, most=3)


def _tree(state: AgentState, goal: Goal, branch: str, depth: int) -> Iterable[Row]:
    plan = state.plans.get(goal.id)
    done, clauses = _clauses(plan) if plan else (0, 0)
    mark, words = goal.ending
    yield goal_row(goal.id, goal.text, mark, branch, done, clauses, words)
    children = list(state.children(goal.id))
    for child in children:
        lead = "  " * min(depth, DEEPEST) + ("└ " if child is children[-1] else "├ ")
        yield from _tree(state, child, lead, depth + 1)


def _clauses(plan: Plan) -> tuple[int, int]:
    """How many clauses of the goal are done, and how many there are."""
    open_by_clause: dict[int, bool] = {}
    for step in plan.steps:
        index = step.provenance.clause_index
        if index:
            undone = not step.status.terminal or step.status is StepStatus.SKIPPED
            open_by_clause[index] = open_by_clause.get(index, False) or undone
    return sum(not still_open for still_open in open_by_clause.values()), len(open_by_clause)


def _agent(state: AgentState, selected: bool) -> Row:
    """An agent's row, made once for each state that it comes to."""
    kept = _ROWS.get(state.agent_id)
    if kept is None or kept[:2] != (state.hash, selected):
        mark, note = _AGENT_MARKS.get(state.mode, "stopped"), state.mode.value.lower().replace("_", " ")
        if state.mode is not Mode.SHELL and needs_operator(state):
            mark, note = "asks", "asks you"
        row = agent_row(state.agent_id, mark, note, selected=selected)
        kept = _ROWS[state.agent_id] = (state.hash, selected, row)
    return kept[2]


def needs_operator(state: AgentState) -> bool:
    """Whether the agent waits for a decision of the operator's."""
    turn = state.intervention is not None and not state.shell_taken
    plans = mind_views.held_generation(state) is not None
    waits = state.mode is Mode.WAITING or bool(state.approvals.held)
    return turn or plans or state.handover is not None or waits


# ------------------------------------------------------------------ plan


def plan(state: AgentState, intention: int = 0) -> PlanModel:
    """The plan of the goal that is pursued, or of the last one; of a reasoner that of an intention."""
    if state.reasons:
        return mind_views.plan(state, intention)
    shown = state.plan
    if shown is None:
        return PlanModel()
    pending = shown.current
    return PlanModel(
        steps=tuple(_step(state, step, pending) for step in shown.steps),
        goal=state.goals[shown.goal].text if shown.goal in state.goals else "",
        revision=shown.revision,
    )


def _step(state: AgentState, step: PlanStep, pending: PlanStep | None) -> StepLine:
    step = state.as_settled(step)
    mark: StepMark = "skipped" if step.status is StepStatus.ABANDONED else cast(StepMark, step.status.value)
    is_next = pending is not None and step.id == pending.id
    if step.summary.is_a("step.unknown") and step.status is StepStatus.FAILED:
        mark = "unknown"
    elif step.status is StepStatus.COMPLETED and step.summary.is_a("step.by-hand"):
        mark = "forced"
    elif step.status is StepStatus.ABANDONED and step.attempts:
        mark = "failed"  # it was tried; the thinker goes on without it
    elif is_next and mark == "planned" and not state.goals[state.current_goal].status.terminal:
        mark = "next"
    failed = mark in ("failed", "unknown")
    provenance = step.provenance
    return StepLine(
        id=step.id,
        text=step_text(step),
        status=mark,
        breakpoint=step.id in state.breakpoints or step.id in _watched_steps(state),
        held=is_next and state.mode in HELD_MODES,
        tool=step.tool,
        command=step.command or step.op.value,
        args=step.args,
        corrected=mind_views.corrected(state, step.id),
        thinker=provenance.by,
        recipe=provenance.recipe,
        clause=provenance.clause,
        clause_index=provenance.clause_index,
        attempts=step.attempts,
        given_up=step.status is StepStatus.ABANDONED,
        course=_course(state, step),
        summary="" if failed else step.summary,
        error=step.summary if failed else "",
        depends_on=step.depends_on,
        group=step.group,
    )


def _course(state: AgentState, step: PlanStep) -> str:
    """How a step stands to the plan that was accepted; empty where none was."""
    place = state.find_step(step.id)
    accepted = state.approvals.accepted.get(place[0].goal) if place is not None else None
    if place is None or accepted is None:
        return ""
    if state.goals[place[0].goal].status.terminal:
        return DeviationKind.NO_LIVE_GOAL
    own = next((other for other in accepted.steps if other.id == step.id), None)
    same = own is not None and call_of_step(own) == call_of_step(place[1])
    return DeviationKind.ON_PLAN if same else DeviationKind.OFF_PLAN


def _watched_steps(state: AgentState) -> set[str]:
    """Steps that breakpoints with a condition or a count are on."""
    enabled = (point.spec for point in state.points.values() if point.enabled)
    return {spec.subject for spec in enabled if spec.kind is BreakKind.STEP}


def goal_evidence(state: AgentState, goal: str) -> str:
    """The newest result of a goal's plan, which shows that it was achieved; empty where there is none."""
    plan = state.plans.get(goal)
    done = [step for step in plan.steps if step.status is StepStatus.COMPLETED] if plan else []
    if not done:
        return ""
    return f", shown by {done[-1].id}: {done[-1].summary or done[-1].description} (drift shows the rest)"


# ------------------------------------------------------------------ working memory


def working_memory(
    state: AgentState, memories: Sequence[Row] = (), capacity: int = 0, hint: str = ""
) -> ListModel:
    """What the agent holds now: its goal, the pending step, the last results, its beliefs.

    Args:
        state: the agent's.
        memories: in mind.
        capacity: memories that may be in mind; 0 where nothing remembers.
        hint: what is said where no memory is in mind.
    """
    rows = []
    goal = state.goal
    if goal is not None and not goal.status.terminal:
        rows.append(entry_row(f"goal:{goal.id}", "goal", goal.text, focused=True))
        if state.step is not None:
            rows.append(entry_row("step", "next", step_text(state.as_settled(state.step))))
    steps = state.plan.steps if state.plan is not None else ()
    done = [step for step in steps if step.status is StepStatus.COMPLETED and step.summary]
    rows += [
        entry_row(f"result:{step.id}", "result", f"{step.command}: {step.summary}")
        for step in reversed(done[-RESULTS_SHOWN:])
    ]
    beliefs = sorted(state.beliefs.values(), key=lambda belief: -belief.tick)
    rows += [
        entry_row(
            f"belief:{belief.key}",
            "belief",
            f"{belief.key} = {_value(belief.value)}",
            confidence=belief.confidence,
            fresh=belief.tick == state.tick and state.tick > 0,
        )
        for belief in beliefs[:BELIEFS_SHOWN]
    ]
    return memory_rows(rows, memories, capacity, hint)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "nothing"
    return str(value)


# ------------------------------------------------------------------ status and intervention


RESTRICTED = "RESTRICTED"
"""Said where the workspace's folder is not trusted."""


def status(state: AgentState | None, health: Health, sandbox: SandboxReport) -> StatusModel:
    """The status line."""
    words, alarm = sandbox.summary, sandbox.alarm
    if health.restricted:
        words, alarm = f"{words} · {RESTRICTED}", alarm or RESTRICTED
    held = StatusModel(sandbox=words, sandbox_alarm=alarm, journal=health.journal)
    if state is None:
        return replace(held, point="no agent yet")
    return replace(
        held,
        agent=state.agent_id,
        mode="PAUSED" if state.mode is Mode.TIMED_OUT else cast(Any, state.mode.value),
        point=_point(state),
        asks=needs_operator(state),
        holder=state.control.holder,
        tick=state.tick,
        thinker="agentspeak" if state.reasons else state.model or _thinker(state),
        context=state.context_share,
        tokens=state.tokens,
        cost_usd=state.cost_usd,
        unpriced=bool(state.unpriced_calls),
        background=len(state.meta.running),
        background_limit=SLOTS if state.meta.on else 0,
        errors=len(open_failures(state)),
        fault="; ".join(health.agents),
    )


def _thinker(state: AgentState) -> str:
    """Who thinks for an agent that has asked no model yet."""
    return "recorded" if recording_of(state.config.meta) else thinker_name(state.config.thinker)


def others(clients: Iterable[Mapping[str, Any]], operator: str) -> tuple[tuple[str, bool], ...]:
    """Who else is connected to the engine, and whether they only watch."""
    watches: dict[str, bool] = {}
    for client in clients:
        if (name := str(client.get("operator", ""))) != operator:
            watches[name] = watches.get(name, True) and bool(client.get("watch"))
    return tuple(sorted(watches.items()))


def _point(state: AgentState) -> str:
    match state.mode:
        case Mode.SHELL:
            return "you hold the shell"
        case Mode.FROZEN:
            return "processes stand still (X)"
        case _ if state.handover is not None:
            return "your changes wait (t)"
        case _ if mind_views.held_generation(state) is not None:
            return "plans wait for you (i)"
        case Mode.PAUSED if state.held_by is not None:
            return f"held by the budget of {state.held_by.budget}: {state.held_by.kind} ($)"
        case Mode.WAITING:
            return "may it? (a, d)"
        case _ if state.approvals.held:
            return "a re-plan waits (a, d)"
        case Mode.TIMED_OUT:
            return f"{Mode.TIMED_OUT}: {state.pause_point.value} · {state.run_reason}"
        case Mode.PAUSED if state.run_reason.is_a("run.breakpoint"):
            return cut_text(clean_line(state.run_reason), HELD_CELLS)
        case Mode.PAUSED:
            reason = (
                f" · {state.run_reason}"
                if any(map(state.run_reason.is_a, ("run.budget", "run.stuck")))
                else ""
            )
            return f"{state.pause_point.value}{reason}"
        case Mode.INTERVENTION:
            return "your turn (i)"
        case Mode.IDLE:
            return "nothing to do" if state.reasons else "no open goal"
        case Mode.STOPPED:
            return state.run_reason
        case _ if state.meta.stuck is not None:
            return cut_text(clean_line(f"may be stuck: {state.meta.stuck.text}"), POINT_CELLS)
    if state.retry is not None:
        return f"retry {state.retry.attempt}/{state.retry.of} in {state.retry.delay_s:.1f} s"
    return _doing(state)


def _doing(state: AgentState) -> str:
    """What a running agent does, or waits for; empty when it is about to continue."""
    if state.action is None:
        wait = waiting_for(state)
        return "" if wait.kind is WaitKind.ITSELF else cut_text(clean_line(wait.what), POINT_CELLS)
    if not state.acting:
        return "saving the files first"
    return cut_text(call_text(state.action.command, state.action.args), POINT_CELLS)


def no_jail(sandbox: SandboxReport) -> tuple[list[Fact], str, str]:
    """What the operator sees where the jail that the policy requires cannot be had."""
    facts = [Fact("why", sandbox.reason, "error")]
    for layer in sandbox.missing:
        facts.append(Fact("missing", f"{layer.name}: {layer.reason}"))
        facts += [Fact("mend", layer.fix, "strong")] if layer.fix else []
    unconfined = sandbox.tier == Tier.PATHS
    weaker = "run programs UNCONFINED" if unconfined else f"run programs in the weaker jail {sandbox.tier}"
    return facts, weaker, PROMISES[sandbox.tier]


def intervention(state: AgentState, last_words: str = "") -> InterventionModel | None:
    """What the operator sees when it is their turn, or None.

    Args:
        state: the agent that waits.
        last_words: the end of what the failed step printed.
    """
    turn = state.intervention
    if turn is None:
        return None
    place = state.find_step(turn.step) if turn.step else None
    goal = state.goals.get(turn.goal)
    disabled = {Offer.TAKE_SHELL: "you have it already"} if state.shell_taken else {}
    if place is None:
        nothing = "no step is concerned"
        disabled |= dict.fromkeys((Offer.EDIT_AND_RETRY, Offer.GIVE_RESULT, Offer.SKIP), nothing)
    if over := goal is None or goal.status.terminal:
        disabled |= dict.fromkeys((Offer.REPLACE_REST, Offer.ABORT), "no goal is open")
    return InterventionModel(
        goal=goal.text if goal and not over else "",
        step=step_text(state.as_settled(place[1])) if place else "",
        error_kind=turn.kind,
        error="\n".join(filter(None, (turn.reason, last_words))) if turn.kind or turn.unsaved else "",
        tried=tuple(map(strategy_text, turn.tried)),
        disabled=disabled,
        unsaved=turn.unsaved and place is not None,
        idle=over and place is None,
    )


def handover(state: AgentState) -> HandoverModel | None:
    """What the operator changed at the shell and has not settled, or None."""
    waits = state.handover
    if waits is None:
        return None
    return HandoverModel(
        changes=waits.offers,
        goes_on=_place(waits.session) if waits.session is not None else "",
        stays=_place(state.sandbox),
    )


def _place(session: SandboxSession) -> str:
    """A session's directory and virtual environment in words: `./shop with .venv`."""
    where = "./" if session.cwd == "." else f"./{session.cwd}"
    return f"{where} with {session.venv}" if session.venv else where


class WaitingCount:
    """Counts what waits over all agents; only what has changed is looked at again."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self._agents: dict[str, tuple[int, int]] = {}
        self._system = self._crew = (-1, 0)

    def count(
        self,
        agents: Iterable[AgentState],
        system: MastermindState | None,
        crew: tuple[int, Callable[[], int]] | None,
    ) -> int:
        """How many things wait for this operator.

        Args:
            agents: the states of all agents.
            system: what Mastermind knows; None while it is not open.
            crew: the version of the crew's state, and what counts its requests; None while it is not open.
        """
        count = sum(self._of(state) for state in agents)
        if system is not None:
            if self._system[0] != system.version:
                self._system = (system.version, len(needs_of_system(system)))
            count += self._system[1]
        if crew is not None:
            if self._crew[0] != crew[0]:
                self._crew = (crew[0], crew[1]())
            count += self._crew[1]
        return count

    def _of(self, state: AgentState) -> int:
        known = self._agents.get(state.agent_id)
        if known is None or known[0] != state.version:
            mine = sum(need.of in ("", self._operator) for need in needs_of(state))
            known = self._agents[state.agent_id] = (state.version, mine)
        return known[1]
