"""The words of the command bar: one table, from which help, completion and dispatch all come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from app import (
    approval_verbs,
    break_verbs,
    budget_verbs,
    crew_verbs,
    dispute_verbs,
    inquiry_verbs,
    mastermind_verbs,
    memory_verbs,
    meta_verbs,
    mind_verbs,
    past_verbs,
    search_verbs,
    server_verbs,
    stop_verbs,
    time_verbs,
)
from app.break_verbs import step_id as _step
from app.coder import LineError, parse_line
from app.crew_verbs import ON_HANDOFFS, or_handoff
from app.verb import Context, GrammarError, Intent, Local, Reader, Verb, only, split_word, word
from engine.domain import commands as cmd

GOES_ON = "place"
"""What `settle` calls the directory and virtual environment in which the shell ended."""


# ------------------------------------------------------------------ reading arguments


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise GrammarError(f"{what}: column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"{what}: {error}") from None


def _none(make: Callable[[Context], Intent]) -> Reader:
    def read(rest: str, context: Context) -> Intent:
        if rest:
            raise GrammarError(f"nothing follows this word; '{rest[:40]}' is too much")
        return make(context)

    return read


def _text(rest: str, what: str) -> str:
    if not rest:
        raise GrammarError(f"{what} is missing")
    return rest


def complaint(error: ValidationError) -> str:
    """What pydantic says, in one sentence."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def _goal_id(rest: str, context: Context) -> str:
    state = context.state
    if rest in ("", "this", "."):
        if state is None or not state.open_goals:
            raise GrammarError("a goal is missing, and none is open")
        pursued = state.goal
        return pursued.id if pursued and not pursued.status.terminal else state.open_goals[0].id
    return rest.lower() if rest[0] in "gG" else f"g{rest}"


def _read_goal(rest: str, context: Context) -> Intent:
    priority = 1
    match = re.match(r"(?:-p|--priority|!)\s*(-?\d{1,6})\s+(.*)", rest, re.S)
    if match:
        priority, rest = int(match[1]), match[2]
    text, *criteria = (part.strip() for part in _text(rest, "the goal's text").split("||"))
    return cmd.AdoptGoal(
        agent=context.agent,
        text=_text(text, "the goal's text"),
        priority=priority,
        criteria=tuple(filter(None, criteria)),
    )


def _read_reword(rest: str, context: Context) -> Intent:
    goal, text = word(rest, "a goal")
    return cmd.ChangeGoal(agent=context.agent, goal=_goal_id(goal, context), text=_text(text, "the new text"))


def _read_priority(rest: str, context: Context) -> Intent:
    goal, number = word(rest, "a goal")
    if not re.fullmatch(r"-?\d{1,6}", number):
        raise GrammarError("a whole number is expected; larger is more urgent")
    return cmd.ChangeGoal(agent=context.agent, goal=_goal_id(goal, context), priority=int(number))


def _read_subgoal(rest: str, context: Context) -> Intent:
    goal, text = word(rest, "a goal")
    return cmd.PushGoal(
        agent=context.agent, goal=_goal_id(goal, context), text=_text(text, "the new goal's text")
    )


def _read_under(rest: str, context: Context) -> Intent:
    goal, above = word(rest, "a goal")
    if not above:
        raise GrammarError("say below which: under g3 g1, or under g3 none")
    parent = "" if above == "none" else _goal_id(only(above, "a goal or none"), context)
    return cmd.MoveGoal(agent=context.agent, goal=_goal_id(goal, context), parent=parent)


def _read_run(rest: str, context: Context) -> Intent:
    if rest and not re.fullmatch(r"[0-9]{1,9}", rest):
        raise GrammarError("a number of loops or nothing is expected; to run a shell command type: ! run …")
    return cmd.Run(agent=context.agent, max_loops=int(rest) if rest else None)


def _read_until(rest: str, context: Context) -> Intent:
    return cmd.Run(agent=context.agent, until=_goal_id(rest, context))


def _read_edit(rest: str, context: Context) -> Intent:
    name, text = word(rest, "a step")
    step = _step(name, context)
    if not text:
        return Local("edit_step", step)
    if text.startswith("{"):
        changes = _json(text, "this is no JSON")
        return cmd.EditStep.model_validate({**changes, "agent": context.agent, "step": step})
    command, args = _tool_line(text, context)
    return cmd.EditStep(agent=context.agent, step=step, command=command, args=args)


def _tool_line(text: str, context: Context) -> tuple[str, dict[str, Any]]:
    try:
        return parse_line(text, context.spec_of)
    except LineError as error:
        raise GrammarError(str(error)) from None


def _read_insert(rest: str, context: Context) -> Intent:
    before = None
    match = re.match(r"before\s+(\S+)\s+(.*)", rest, re.S)
    if match:
        before, rest = _step(match[1], context), match[2]
    command, args = _tool_line(_text(rest, "a command such as: write notes.txt hello"), context)
    return cmd.InsertStep(
        agent=context.agent, before=before, command=command, args=args, description=rest[:80]
    )


def _read_move(rest: str, context: Context) -> Intent:
    name, where = word(rest, "a step")
    if where not in ("up", "down"):
        raise GrammarError("say where: move STEP up, or move STEP down")
    by = -1 if where == "up" else 1
    return cmd.MoveStep.model_validate({"agent": context.agent, "step": _step(name, context), "by": by})


def _read_skip(rest: str, context: Context) -> Intent:
    name, _, reason = split_word(rest)
    return cmd.SkipStep(
        agent=context.agent, step=_step(name, context), reason=reason.strip() or "skipped by the operator"
    )


def _read_retry(rest: str, context: Context) -> Intent:
    state = context.state
    planless = state is not None and state.step is None and state.current_goal
    if rest[:1] in ("g", "G") or (planless and rest in ("", "this", ".")):
        return cmd.RetryStep(agent=context.agent, goal=_goal_id(rest, context))
    return cmd.RetryStep(agent=context.agent, step=_step(rest, context))


def _read_result(rest: str, context: Context) -> Intent:
    name, text = word(rest, "a step")
    return cmd.GiveResult(agent=context.agent, step=_step(name, context), result=_text(text, "the result"))


def _read_plan(rest: str, context: Context) -> Intent:
    return cmd.ReplacePlan(
        agent=context.agent,
        goal=_goal_id("", context),
        plan=_text(rest, "clauses in English, or a JSON plan"),
    )


def _read_call(rest: str, context: Context) -> Intent:
    if re.match(r"[A-Za-z][\w-]*[.:]\w|mcp__", rest):
        return _read_server_call(rest, context)
    command, args = _tool_line(_text(rest, "a sandbox command such as: ls"), context)
    return cmd.CallTool(agent=context.agent, command=command, args=args)


def _read_server_call(rest: str, context: Context) -> Intent:
    """A tool of an MCP server in one of its spellings, with its arguments as JSON."""
    from engine.domain.strict_json import StrictJsonError, read_json
    from engine.mcp.names import command_of, split

    named, _, text = split_word(rest)
    server, tool = split(named) or (named, "")
    if any(one.waits for name, one in context.servers.items() if name.lower() == server.lower()):
        raise GrammarError(f"{server} waits for your leave to start: mcp_trust {server}")
    try:
        args = read_json(text.strip() or "{}")
    except StrictJsonError as error:
        raise GrammarError(f"the arguments of {named} are no JSON: {error}") from None
    if not isinstance(args, dict):
        raise GrammarError(f'the arguments of {named} are a JSON object, such as {{"text": "hello"}}')
    return cmd.CallTool(agent=context.agent, tool=server, command=command_of(server, tool), args=args)


def _read_stop_job(rest: str, context: Context) -> Intent:
    running = [job for job, _ in _jobs(context)]
    if not rest and len(running) != 1:
        raise GrammarError(f"name the job; running jobs: {', '.join(running) or 'none'}")
    return cmd.StopJob(agent=context.agent, job=only(rest or running[0], "a job").lower())


def _read_believe(rest: str, context: Context) -> Intent:
    if context.state is not None and context.state.reasons:
        return cmd.TellBelief(agent=context.agent, literal=_text(rest, "a belief such as raining"))
    key, text = word(rest.replace("=", " ", 1) if re.match(r"\S+=", rest) else rest, "a key")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _text(text, "a value")
    return cmd.Believe(agent=context.agent, key=key, value=value)


def _read_forget(rest: str, context: Context) -> Intent:
    if context.state is not None and context.state.reasons:
        literal = _text(rest, "a belief such as raining")
        return cmd.TellBelief(agent=context.agent, literal=literal, removed=True)
    return cmd.Forget(agent=context.agent, key=only(rest, "a key"))


def _read_settle(rest: str, context: Context) -> Intent:
    words = rest.split() or ["all"]
    if "all" in words:
        return cmd.SettleChanges(agent=context.agent)
    keys = tuple(word for word in words if word not in ("none", GOES_ON))
    return cmd.SettleChanges(agent=context.agent, accept=keys, follow=GOES_ON in words)


# ------------------------------------------------------------------ choices for completion


def _steps(context: Context) -> Iterable[tuple[str, str]]:
    plan = context.state.plan if context.state else None
    return [(step.id, step.description) for step in plan.steps if not step.status.terminal] if plan else []


def _goals(context: Context) -> Iterable[tuple[str, str]]:
    return [(goal.id, goal.text) for goal in context.state.open_goals] if context.state else []


def _jobs(context: Context) -> Iterable[tuple[str, str]]:
    return [(job.id, job.command) for job in context.state.running_jobs] if context.state else []


def _agents(context: Context) -> Iterable[tuple[str, str]]:
    return [(name, "agent") for name in context.agents]


def _missions(context: Context) -> Iterable[tuple[str, str]]:
    return [(name, "mission") for name in context.missions]


def _themes(context: Context) -> Iterable[tuple[str, str]]:
    return [(name, "theme") for name in context.themes]


def _examples(context: Context) -> Iterable[tuple[str, str]]:
    return [(example, "") for example in context.examples]


def _changes(context: Context) -> Iterable[tuple[str, str]]:
    handover = context.state.handover if context.state else None
    if handover is None:
        return []
    place = [(GOES_ON, "go on where the shell ended")] if handover.session else []
    changes = [(offer.key, offer.text) for offer in handover.offers]
    return [("all", "all that changed"), ("none", "none of it"), *changes, *place]


def _beliefs(context: Context) -> Iterable[tuple[str, str]]:
    if context.state is None:
        return []
    if context.state.reasons:
        return [(one.text, ", ".join(one.sources)) for one in context.state.held_beliefs.values()]
    return [(key, str(belief.value)[:60]) for key, belief in context.state.beliefs.items()]


def _tiers(context: Context) -> Iterable[tuple[str, str]]:
    return [("kernel", "without namespaces"), ("paths", "UNCONFINED: nothing holds programs")]


def _verbs(context: Context) -> Iterable[tuple[str, str]]:
    return [(verb.name, verb.help) for verb in VERBS]


# ------------------------------------------------------------------ the table

_OWN: tuple[Verb, ...] = (
    Verb("goal", "goal [!PRIORITY] TEXT [|| CRITERION …]", "give the agent a goal in plain English, and "
         "for a model what must be shown to hold", _read_goal, "Goals",
         choices=_examples),
    Verb("drop", "drop [GOAL]", "give a goal up",
         lambda rest, c: cmd.DropGoal(agent=c.agent, goal=_goal_id(rest, c)), "Goals", choices=_goals),
    Verb("abort", "abort [GOAL]", "fail a goal by your decision",
         lambda rest, c: cmd.AbortGoal(agent=c.agent, goal=_goal_id(rest, c)), "Goals", aliases=("give_up",),
         choices=_goals),
    Verb("reword", "reword GOAL TEXT", "change a goal's text; it is planned anew", _read_reword, "Goals",
         choices=_goals),
    Verb("subgoal", "subgoal GOAL TEXT", "put a goal below another: it is pursued first", _read_subgoal,
         "Goals", choices=_goals),
    Verb("under", "under GOAL OTHER|none", "let a goal serve another one, or none", _read_under, "Goals",
         choices=_goals),
    Verb("priority", "priority GOAL NUMBER", "change a goal's priority; larger is more urgent",
         _read_priority, "Goals", choices=_goals),
    Verb("mission", "mission NAME", "lay a shipped mission down and adopt its goal",
         lambda rest, c: Local("mission", only(rest, "a mission")), "Goals", choices=_missions),
    Verb("run", "run [LOOPS]", "let the agent run", _read_run, "Steering", aliases=("go", "resume")),
    Verb("until", "until [GOAL]", "run until this goal ends, then pause", _read_until, "Steering",
         choices=_goals),
    Verb("pause", "pause", "start no new action", _none(lambda c: cmd.Pause(agent=c.agent)), "Steering"),
    *break_verbs.VERBS,
    *stop_verbs.VERBS,
    *budget_verbs.VERBS,
    Verb("intervene", "intervene", "take the agent's turn",
         _none(lambda c: cmd.Intervene(agent=c.agent)), "Steering"),
    Verb("handback", "handback", "give the turn back; the agent looks at its workspace afresh",
         _none(lambda c: cmd.HandBack(agent=c.agent)), "Steering", aliases=("hand_back",)),
    Verb("take_shell", "take_shell", "work in the agent's sandbox yourself; it waits",
         _none(lambda c: cmd.TakeShell(agent=c.agent)), "Steering", aliases=("shell",)),
    Verb("return_shell", "return_shell [NOTE]", "hand the shell back, with a word to the agent",
         lambda rest, c: cmd.ReturnShell(agent=c.agent, note=rest), "Steering"),
    Verb("settle", "settle [all|none|KEY …]", "say what the agent is to know of what you changed",
         _read_settle, "Steering", choices=_changes),
    Verb("plan", "plan CLAUSES | plan JSON", "replace what has not run of the plan", _read_plan, "Plan"),
    Verb("edit", "edit STEP [COMMAND ARGUMENTS | JSON]", "change what a step does", _read_edit, "Plan",
         choices=_steps),
    Verb("insert", "insert [before STEP] COMMAND ARGUMENTS", "put a new step into the plan", _read_insert,
         "Plan"),
    Verb("delete", "delete STEP", "take a step out of the plan",
         lambda rest, c: cmd.DeleteStep(agent=c.agent, step=_step(only(rest, "a step"), c)), "Plan",
         choices=_steps),
    Verb("move", "move STEP up|down", "move a step", _read_move, "Plan", choices=_steps),
    Verb("skip", "skip [STEP] [REASON]", "go on without a step", _read_skip, "Plan", choices=_steps),
    Verb("retry", "retry [STEP|GOAL]", "run a failed step again now, or ask for a goal's plan again",
         _read_retry, "Plan", choices=_steps),
    Verb("unsaved", "unsaved [STEP]", "run a step once without saving the files first; it cannot be undone",
         lambda rest, c: cmd.WaiveSnapshot(agent=c.agent, step=_step(rest, c)), "Plan", choices=_steps),
    Verb("result", "result STEP TEXT", "settle a step with a result you vouch for", _read_result, "Plan",
         choices=_steps),
    Verb("believe", "believe KEY VALUE", "put a belief into the agent's mind", _read_believe, "Mind",
         choices=_beliefs),
    Verb("forget", "forget KEY", "take a belief out of the agent's mind",
         _read_forget, "Mind", choices=_beliefs),
    *approval_verbs.VERBS,
    *mind_verbs.VERBS,
    *memory_verbs.VERBS,
    *meta_verbs.VERBS,
    *past_verbs.VERBS,
    *time_verbs.VERBS,
    *search_verbs.VERBS,
    *inquiry_verbs.VERBS,
    *dispute_verbs.VERBS,
    Verb("!", "! COMMAND ARGUMENTS", "call the sandbox tool yourself, in the agent's session; "
         "an MCP server's tool: ! SERVER.TOOL {JSON}", _read_call, "Sandbox", aliases=("coder",)),
    Verb("policy", "policy", "what the agent's programs may do, and what holds them",
         _none(lambda c: Local("policy")), "Sandbox"),
    Verb("accept_tier", "accept_tier TIER", "let programs run in a weaker jail until this session ends",
         lambda rest, c: cmd.AcceptTier.model_validate({"tier": only(rest, "a tier").upper()}), "Sandbox",
         choices=_tiers),
    Verb("jobs", "jobs", "list the background jobs; ! start COMMAND begins one",
         _none(lambda c: cmd.CallTool(agent=c.agent, command="jobs", args={})), "Sandbox"),
    Verb("stop_job", "stop_job [JOB]", "end a background job", _read_stop_job, "Sandbox", choices=_jobs),
    *server_verbs.VERBS,
    *mastermind_verbs.VERBS,
    *crew_verbs.VERBS,
    Verb("agent_list", "agent_list", "the agents and what they do", _none(lambda c: Local("agent_list")),
         "Agents"),
    Verb("agent", "agent ID", "look at another agent",
         lambda rest, c: Local("select_agent", only(rest, "an agent id")), "Agents", choices=_agents),
    Verb("status", "status", "where the agent stands", _none(lambda c: Local("status")), "Agents"),
    Verb("theme", "theme [NAME]", "change colours", lambda rest, c: Local("theme", rest), "Cockpit",
         choices=_themes),
    Verb("help", "help [VERB]", "the words of this bar", lambda rest, c: Local("help", rest), "Cockpit",
         aliases=("?",), choices=_verbs),
    Verb("quit", "quit", "leave; agents stay where they are", _none(lambda c: Local("quit")), "Cockpit",
         aliases=("exit", "q")),
)  # fmt: skip
VERBS: tuple[Verb, ...] = tuple(or_handoff(verb) if verb.name in ON_HANDOFFS else verb for verb in _OWN)
