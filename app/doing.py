"""`pilothouse do`: one line of the command bar, without a screen."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from app import faults
from app.grammar import (
    all_verbs,
    asks_preview,
    broken_plugins,
    find_verb,
    is_of_crew,
    is_of_mastermind,
    read_line,
    verb_of,
    wishes,
)
from app.headless import EXIT_CODES, Status, opened
from app.inquiry_verbs import split_way
from app.lines import ending_jobs
from app.missions import agent_for, free_name, lay_down
from app.settings import Settings
from app.verb import Context, GrammarError, Local, ServerFacts
from app.waiting import AgentFaultError, at_rest, wait_until
from engine.domain import commands as cmd
from engine.domain.crew_commands import ForCrew
from engine.domain.mastermind_commands import ForMastermind
from engine.domain.metacognition import JobOutcome, MetaTask
from engine.domain.ports import Ports
from engine.domain.reasoning import GeneratedPlan, GenerationStage
from engine.domain.state import AgentState, Mode
from engine.engine import Engine
from engine.journal.errors import JournalError
from engine.library import load_missions
from engine.metacognition.stuck import signs_of
from engine.sandbox.policy import Tier
from engine.steering.gate import may_think
from engine.thinkers.procedural import ProceduralThinker

Answer = tuple[int, dict[str, Any], str]
"""Exit code, JSON answer, text."""

ACTS_ALONE = (cmd.Run, cmd.Step)
"""Commands after which the agent acts, which it does not without the jail that its policy requires."""
LETS_ACT = (*ACTS_ALONE, cmd.CallTool)
"""Commands after which `do` waits until the agent rests."""
LETS_PLAN = (cmd.AdoptGoal, cmd.ChangeGoal)
"""Commands after which `do` waits until there is a plan to look at, or a question about it."""


async def do_line(
    workspace: Path,
    line: str,
    *,
    agent: str = "",
    accept: Tier | None = None,
    dry: bool = False,
    quiet: bool = False,
) -> Answer:
    """Carry out one line; exit code 0 when done, 1 when refused or failed, 2 when not understood.

    3 means that the operator is needed. As for `run`, 70 means that the agent ended by a fault, 78 that there
    is no jail to let it act in.

    Args:
        workspace: where.
        line: as typed in the command bar; with ` ?` behind it it is only told what it would do.
        agent: for whom it is meant; empty for the first one.
        accept: the weakest jail that is accepted.
        dry: tell only what it would do.
        quiet: tell no progress on standard error.

    Raises:
        JournalError: the workspace cannot be opened.
    """
    bare = asks_preview(line)
    line, dry = (bare, True) if bare is not None else (line, dry)
    try:
        if not wishes(line):
            verb_of(line)
    except GrammarError as error:
        # A slip of the finger makes no workspace.
        return 2, {}, str(error)
    try:
        return await _do_bare(workspace, line, agent=agent, accept=accept, dry=dry, quiet=quiet)
    except JournalError:
        raise
    except Exception as error:  # noqa: BLE001 - it is told under an id, as in the cockpit (behaviour 4)
        return _refused(Status.FAULT, faults.told(workspace, error))


async def _do_bare(
    workspace: Path, line: str, *, agent: str, accept: Tier | None, dry: bool, quiet: bool
) -> Answer:
    """See `do_line`; the line begins with a verb, or is a wish."""
    config = Settings.load(workspace).engine_config(accept=accept)
    async with opened(workspace, config) as engine:
        return await do_in(engine, line, agent=agent, dry=dry, quiet=quiet)


async def do_in(
    engine: Engine, line: str, *, agent: str = "", dry: bool = False, quiet: bool = False
) -> Answer:
    """Carry out one line in an open workspace; see `do_line`."""
    chosen = agent or (engine.agents[0] if engine.agents else "")
    if agent and agent not in engine.agents:
        return 2, {}, f"there is no agent '{agent}'; agents: {', '.join(engine.agents) or 'none yet'}"
    state = await engine.view(chosen) if chosen else None
    context = context_of(engine, chosen, state)
    if is_of_mastermind(line):
        context = replace(context, mastermind=(await engine.mastermind()).state)
    if is_of_crew(line):
        context = replace(context, crew=(await engine.crew()).state)
    if dry or wishes(line):
        return await _foretold(engine, line, context, dry=dry)
    try:
        intent = read_line(line, context)
    except GrammarError as error:
        return 2, {}, str(error)
    if isinstance(intent, cmd.TakeShell | cmd.ReturnShell):
        return 2, {}, "a shell needs the cockpit, where you can work in it"
    try:
        if isinstance(intent, Local):
            return await _do_locally(engine, intent, chosen)
        if isinstance(intent, ForMastermind):
            from app.mastermind_doing import do_command

            return await do_command(engine, intent, quiet=quiet)
        if isinstance(intent, ForCrew):
            from app import crew_doing

            return await crew_doing.do_command(engine, intent)
        return await _submit(engine, intent)
    except AgentFaultError as error:
        return _refused(Status.FAULT, str(error))


async def _foretold(engine: Engine, line: str, context: Context, *, dry: bool) -> Answer:
    """What a line would do; a wish is shown as it is understood, for the operator to enter it."""
    from app.mastermind_doing import previewed

    code, answer, text = await previewed(engine, line, context)
    if dry or code == 2:
        return code, answer, text
    said = f"'{answer['line'].split()[1]}' is no command; what was understood is not done before you enter it"
    return 3, {**answer, "ok": False, "message": said}, f"{text}\n{said}"


def _refused(status: Status, message: str) -> Answer:
    return EXIT_CODES[status], {"ok": False, "status": status.value, "message": message}, message


def planned(state: AgentState) -> bool:
    """True when the agent has a step to take, asks, or may not plan now."""
    waits = not may_think(state, free=state.config.thinker == ProceduralThinker.name)
    poised = state.reasons and state.mind is not None and (state.mind.poised or state.mind.idle)
    return waits or not state.open_goals or state.step is not None or poised


def context_of(engine: Engine, agent: str, state: AgentState | None) -> Context:
    """What a line is understood against in this workspace."""
    return Context(
        agent=agent,
        state=state,
        agents=engine.agents,
        missions=tuple(load_missions()),
        examples=engine.examples,
        spec_of=engine.describe_command,
        servers=_servers_of(engine),
    )


def _servers_of(engine: Engine) -> dict[str, ServerFacts]:
    """The servers of the workspace's own `mcp.json`."""
    if engine.servers is None:
        return {}
    states = {view.name: view.state.value for view in engine.servers.views}
    return {
        one.server: ServerFacts(f"{states[one.server]}: {one.line}", one.facts, one.waits)
        for one in engine.servers.entries
    }


async def _submit(engine: Engine, command: cmd.Command) -> Answer:
    if isinstance(command, cmd.AcceptTier):
        return 2, {}, "what is accepted ends with this line; give it the option --accept-tier instead"
    if fault := engine.fault(command.agent):
        return _refused(Status.FAULT, fault)
    if isinstance(command, ACTS_ALONE) and (refusal := engine.sandbox(command.agent).refusal):
        return _refused(Status.NO_JAIL, refusal)
    since = await engine.head()
    receipt = await engine.submit(command, operator="cli")
    answer: dict[str, Any] = {"ok": receipt.ok, "message": receipt.message, "event": receipt.event}
    if receipt.ok and isinstance(command, (*LETS_ACT, *LETS_PLAN)):
        rests = at_rest if isinstance(command, LETS_ACT) else planned
        state = await wait_until(engine, command.agent, rests)
        answer["mode"] = state.mode.value
        answer["summary"] = state.last_summary
        answer["events"] = await engine.head() - since
        steps = len(state.plan.steps) if state.plan else 0
        told = state.last_summary if isinstance(command, LETS_ACT) else f"{steps} steps planned"
        if isinstance(command, LETS_PLAN) and state.plan is None and state.intervention is None:
            told = "it plans once it runs"
        if state.approvals.question is not None or state.approvals.held:
            told = "it waits for you: inbox says for what"
        parts = (receipt.message, state.mode, told, ending_jobs(state.running_jobs))
        return 0, answer, " · ".join(part for part in parts if part)
    if receipt.ok and isinstance(command, cmd.Stop):
        from app.stopping import stop_answer

        seen, text = await stop_answer(engine, receipt.data, receipt.message)
        return 0, {**answer, **seen}, text
    if receipt.ok and isinstance(command, cmd.ForceMeta):
        return await _thought(engine, command, receipt)
    return (0 if receipt.ok else 1), answer, receipt.message


async def _thought(engine: Engine, command: cmd.ForceMeta, receipt: cmd.Receipt) -> Answer:
    """Wait until a background task that was asked for is over, as it would be cut off with the session."""
    task = MetaTask(command.task)
    state = await wait_until(
        engine, command.agent, lambda now: task not in now.meta.forced and now.meta.doing(task) is None
    )
    over = next((one for one in reversed(state.meta.ended) if one.job.task is task), None)
    if over is None:
        return 0, {"ok": True, "message": receipt.message, "event": receipt.event}, receipt.message
    done = over.outcome is JobOutcome.DONE
    answer = {"ok": done, "message": over.message, "event": over.event, "outcome": over.outcome.value}
    return (0 if done else 1), answer, over.message


async def _do_locally(engine: Engine, intent: Local, agent: str) -> Answer:
    match intent.action:
        case "help":
            return help_text(intent.argument)
        case "agent_list":
            return await _agent_list(engine)
        case "status":
            return await _status(engine, agent)
        case "why" | "drift":
            return await _ask_the_journal(engine, intent, agent)
        case "wrong" | "right" | "retract":
            return await _mark(engine, intent, agent)
        case "budgets":
            from app.budgeting import tell_budgets

            return tell_budgets(engine, agent, intent.argument)
        case "play":
            from app.playing import play_answer

            return await play_answer(engine, agent, intent.argument)
        case "policy":
            report = engine.sandbox(agent)
            answer = {"tier": report.tier.value, "refusal": report.refusal, "policy": report.policy.as_json()}
            return 0, answer, report.text()
        case "inbox" | "approvals" | "envelope" | "approve_all":
            from app.approving import told_of_approvals

            return await told_of_approvals(engine, intent, agent)
        case "generated_plans" | "breakpoints" | "break_dry":
            return await _of_agent(engine, intent, agent)
        case "step_all":
            return await _step_all(engine, intent.argument)
        case "mission":
            return await _mission(engine, intent.argument, agent)
        case "past" | "compare":
            return await _time(engine, intent, agent)
        case "rewind" | "undo" | "redo" | "fork" | "adopt" | "outcomes":
            return await _change_time(engine, intent, agent)
        case "recap":
            from app.recapping import tell_recap

            return await tell_recap(engine, intent.argument, Settings.load(engine.workspace).operator)
        case "search":
            from app.searching import search_open

            return await search_open(engine, intent.argument)
        case "agents" | "fleet" | "handoffs" | "handoff" | "select" | "takeover" | "ideas":
            from app import crew_doing

            return await crew_doing.answered(engine, intent)
        case "say":
            return 0, {"ok": True, "message": intent.argument}, intent.argument
        case "quit":
            return 0, {"ok": True, "message": "bye"}, "bye"
        case _:
            from app.mastermind_doing import answered, is_ours

            if is_ours(intent):
                return await answered(engine, intent, operator="cli")
    return 2, {}, f"'{intent.action}' works in the cockpit only"


def help_text(verb: str = "") -> Answer:
    """The verbs, or one of them; what is wrong with plugins comes last."""
    try:
        verbs = (find_verb(verb),) if verb else all_verbs()
    except GrammarError as error:
        return 2, {}, str(error)
    rows = [
        {"verb": v.name, "usage": v.usage, "help": v.help, "aliases": list(v.aliases), "group": v.group}
        for v in verbs
    ]
    broken = (
        []
        if verb
        else [{"verb": one.name, "source": one.source, "wrong": one.wrong} for one in broken_plugins()]
    )
    lines = [f"{v.usage:<44} {v.help}" for v in verbs]
    lines += [
        f"{one['verb']:<44} a plugin that cannot be used ({one['source']}): {one['wrong']}" for one in broken
    ]
    return 0, {"verbs": rows, "broken": broken}, "\n".join(lines)


async def _agent_list(engine: Engine) -> Answer:
    states = [await engine.view(name) for name in engine.agents]
    states = [one for one in states if not one.handed_back]
    rows = [
        {
            "id": s.agent_id,
            "type": s.agent_type,
            "mode": s.mode.value,
            "goals": len(s.open_goals),
            "fault": engine.fault(s.agent_id),
        }
        for s in states
    ]
    lines = [
        f"{row['id']:<20} {row['type']:<12} {row['mode']:<13} "
        + (f"fault: {row['fault']}" if row["fault"] else f"{row['goals']} open goals")
        for row in rows
    ]
    return 0, {"agents": rows}, "\n".join(lines) or "no agents yet; agent_create bdi_agent ID makes one"


async def _status(engine: Engine, agent: str) -> Answer:
    from app.inquiring import waiting_text

    if not agent:
        return 2, {}, "there is no agent yet; agent_create bdi_agent ID makes one"
    state = await engine.view(agent)
    waits = await engine.waiting(agent)
    signs = signs_of(state.meta)
    answer = {
        "agent": agent,
        "mode": state.mode.value,
        "point": state.pause_point.value,
        "goals": [{"id": g.id, "text": g.text, "status": g.status.value} for g in state.goals.values()],
        "step": state.step.id if state.step else "",
        "waits_for": state.intervention.reason if state.intervention else "",
        "waiting": {"kind": waits.kind.value, "what": waits.what, "since": waits.since, "event": waits.event},
        "actions": state.actions,
        "failed_actions": state.failed_actions,
        "background": [{"job": j.id, "task": j.task.value, "why": j.why} for j in state.meta.running],
        "signals": [sign.text for sign in signs],
    }
    goals = "; ".join(f"{g.id} {g.status}: {g.text}" for g in state.goals.values()) or "no goals"
    stuck = "".join(f" · may be stuck: {sign.text}" for sign in signs)
    told = waiting_text(waits, Ports().clock.now())
    return 0, answer, f"{agent} {state.mode} ({state.pause_point}) · {told} · {goals}{stuck}"


async def _mark(engine: Engine, intent: Local, agent: str) -> Answer:
    from app.disputing import dispute_answer, retract_answer

    submit = partial(engine.submit, operator="cli")
    if intent.action == "retract":
        return await retract_answer(engine.record, submit, intent.argument, agent)
    lifted = intent.action == "right"
    return await dispute_answer(engine.record, submit, intent.argument, agent, lifted=lifted)


async def _ask_the_journal(engine: Engine, intent: Local, agent: str) -> Answer:
    from app.inquiring import Way, drift_answer, why_answer

    if intent.action == "drift":
        return drift_answer(await engine.store.read(agent), intent.argument)
    what, way = split_way(intent.argument)
    return await asyncio.to_thread(why_answer, await engine.record(), what, Way(way), agent)


async def _time(engine: Engine, intent: Local, agent: str) -> Answer:
    from app.comparing import PastError, compare_words
    from app.past import state_at

    if not agent:
        return 2, {}, "there is no agent yet; agent_create bdi_agent ID makes one"
    past = engine.past(agent)
    try:
        if intent.action == "past":
            return 0, *await state_at(past, intent.argument)
        found = await compare_words(engine, past, intent.argument)
    except PastError as error:
        return 2, {}, str(error)
    return 0, found.as_json(), found.text()


async def _change_time(engine: Engine, intent: Local, agent: str) -> Answer:
    from app import time_doing

    match intent.action:
        case "rewind":
            return await time_doing.do_rewind(engine, intent.argument, agent)
        case "fork":
            return await time_doing.do_fork(engine, intent.argument, agent)
        case "adopt":
            return await time_doing.do_adopt(engine, intent.argument, agent)
        case "outcomes":
            return await time_doing.do_outcomes(engine, intent.argument or agent)
    return await time_doing.do_undo(engine, intent.argument, agent, again=intent.action == "redo")


async def _of_agent(engine: Engine, intent: Local, agent: str) -> Answer:
    if not agent:
        return 2, {}, "there is no agent yet; agent_create bdi_agent ID makes one"
    from app.breaking import breaks_answer, dry_answer

    if intent.action == "break_dry":
        return await dry_answer(engine, agent, intent.argument)
    state = await engine.view(agent)
    if intent.action == "breakpoints":
        return 0, *breaks_answer(state)
    plans = [asdict(one) for one in state.generated]
    waiting = [asdict(one) for one in state.generations.values() if one.stage is GenerationStage.HELD]
    return 0, {"plans": plans, "waiting": waiting}, generated_text(state)


def steppable(state: AgentState) -> bool:
    """Whether an agent takes part when all are stepped: it is paused and has something to do."""
    free = state.intervention is None and state.handover is None
    return state.mode in (Mode.PAUSED, Mode.TIMED_OUT) and free and state.has_work


async def _step_all(engine: Engine, scope: str) -> Answer:
    """Step every paused agent, at once, and wait until all of them rest."""
    waiting = [name for name in engine.agents if steppable(await engine.view(name))]
    steps = (cmd.Step.model_validate({"agent": name, "scope": scope}) for name in waiting)
    answers = await asyncio.gather(*(_submit(engine, step) for step in steps))
    told = [f"{name}: {text}" for name, (_, _, text) in zip(waiting, answers, strict=True)]
    rows = [{"agent": name, **row} for name, (_, row, _) in zip(waiting, answers, strict=True)]
    code = max((code for code, _, _ in answers), default=0)
    return code, {"agents": rows}, "\n".join(told) or "no agent is paused with something to do"


def generated_text(state: AgentState | None, *, short: bool = False) -> str:
    """The plans that models made for an agent, as `.asl` with their provenance; or in a line."""
    plans = state.generated if state is not None else ()
    if short or not plans:
        names = ", ".join(f"{one.label} ({_proof(one)})" for one in plans)
        return names or "no plans wait for your approval, and none were generated"
    return "\n\n".join(
        f"// generated for {one.goal} by {one.model}; {one.generation}, {_proof(one)}\n{one.text}"
        for one in plans
    )


def _proof(plan: GeneratedPlan) -> str:
    return "verified" if plan.verified else f"{plan.succeeded} of {plan.steps} steps have worked"


async def _mission(engine: Engine, name: str, agent: str) -> Answer:
    missions = load_missions()
    if name not in missions:
        return 2, {}, f"there is no mission '{name}'; missions: {', '.join(missions)}"
    own = missions[name].agent
    if own is not None:
        agent = free_name(own.id, engine.agents)
        made = await engine.submit(agent_for(missions[name], agent), operator="cli")
        if not made.ok:
            return 1, {"ok": False, "message": made.message}, made.message
    if not agent:
        return 2, {}, "there is no agent yet; agent_create bdi_agent ID makes one"
    receipt = await lay_down(engine, agent, missions[name])
    if not receipt.ok:
        return 1, {"ok": False, "message": receipt.message}, receipt.message
    await wait_until(engine, agent, lambda state: not state.requests and not state.busy)
    return await _submit(engine, cmd.AdoptGoal(agent=agent, text=missions[name].goal))
