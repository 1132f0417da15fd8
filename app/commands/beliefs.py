"""Commands about what an agent believes and intends: beliefs, marks on results, intentions, made plans."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Iterable
from dataclasses import asdict

from app.commands.arguments import Rest, Word, among, pairs, split_word, word
from app.commands.command import (
    Answer,
    CommandHost,
    Context,
    Form,
    GrammarError,
    Group,
    Show,
    Submit,
    Values,
    chosen_agent,
    late,
)
from engine.core import commands as cmd
from engine.core.reasoner import GeneratedPlan, GenerationStage
from engine.core.state import AgentState

STEERED = ("suspend", "resume", "drop", "fail")
DECISIONS = {"approve": "install them", "reject": "with a reason", "again": "ask the model once more"}
WAYS = ("forward", "wrong")
command = Group("Mind")


# ------------------------------------------------------------------ beliefs


def _believe(context: Context, values: Values) -> cmd.Command:
    text = values["belief"]
    if context.state is not None and context.state.reasons:
        return cmd.TellBelief(agent=context.agent, literal=text)
    key, text = word(text.replace("=", " ", 1) if re.match(r"\S+=", text) else text, "a key")
    if not text:
        raise GrammarError("a value is missing")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return cmd.Believe(agent=context.agent, key=key, value=value)


def _forget(context: Context, values: Values) -> cmd.Command:
    text = values["belief"]
    if context.state is not None and context.state.reasons:
        return cmd.TellBelief(agent=context.agent, literal=text, removed=True)
    key, more = word(text, "a key")
    if more:
        raise GrammarError(f"only a key is expected; '{more[:40]}' is too much")
    return cmd.Forget(agent=context.agent, key=key)


def _beliefs(context: Context) -> Iterable[tuple[str, str]]:
    if context.state is None:
        return []
    if context.state.reasons:
        return [(belief.text, ", ".join(belief.sources)) for belief in context.state.held_beliefs.values()]
    return [(key, str(belief.value)[:60]) for key, belief in context.state.beliefs.items()]


# ------------------------------------------------------------------ why, and results marked as wrong


def split_direction(text: str, _context: Context | None = None) -> tuple[str, str]:
    """What is asked about, and which way: backward where nothing is said of it."""
    subject, _, last = text.rpartition(" ")
    return (subject.strip(), last) if last in WAYS else (text, "backward")


def show_why(host: CommandHost, values: Values) -> Awaitable[Answer | None] | Answer | None:
    """Answer what something depends on, or what depends on it."""
    subject, direction = values["question"]
    return Show(late("why:answer_why"), "why")(host, {"subject": subject, "direction": direction})


def _first_word(text: str, _context: Context) -> str:
    return split_word(text)[0]


def _subject(verb: str) -> str:
    return f"{verb} what? an event (pilot-1:12), an action (a3), error, a belief's key: it"


def _marked(context: Context) -> Iterable[tuple[str, str]]:
    return list(context.state.disputed.items()) if context.state is not None else []


def _subjects(context: Context) -> Iterable[tuple[str, str]]:
    state = context.state
    if state is None:
        return []
    steps = [(step.id, step.description) for step in state.plan.steps] if state.plan else []
    goals = [(goal.id, goal.text) for goal in state.goals.values()]
    beliefs = [(key, str(belief.value)[:60]) for key, belief in state.beliefs.items()]
    return [("error", "the newest failure"), *steps, *goals, *beliefs]


def _known_goal(text: str, context: Context) -> str:
    goal = text.lower()
    if context.state is not None and goal not in context.state.goals:
        raise GrammarError(
            f"there is no goal '{goal[:40]}'; goals: {', '.join(context.state.goals) or 'none yet'}"
        )
    return goal


# ------------------------------------------------------------------ intentions and made plans


def _intention(context: Context, values: Values) -> cmd.Command:
    number, tail = word(values["what"], "an intention")
    how, reason = word(tail, f"one of {', '.join(STEERED)}")
    if number in STEERED and how.isdigit():
        number, how = how, number
    if how not in STEERED or not number.isdigit():
        raise GrammarError(f"give a number and one of {', '.join(STEERED)}: intention 2 suspend")
    fields = {"agent": context.agent, "intention": int(number), "how": how, "reason": reason}
    return cmd.SteerIntention.model_validate(fields)


def _intentions(context: Context) -> Iterable[tuple[str, str]]:
    for number, view in context.state.intentions.items() if context.state else ():
        goal = view.frames[0].goal if view.frames else ""
        how = "resume" if view.state == "suspended" else "suspend"
        yield f"{number} {how}", f"{goal} {view.state}"
        yield f"{number} drop", f"{goal} {view.state}"


def _decide_plans(context: Context, values: Values) -> cmd.Command:
    decision, tail = word(values["what"], f"one of {', '.join(DECISIONS)}")
    ident, _, text = split_word(tail)
    held = [generation for generation, _ in _held(context)]
    if ident not in held and len(held) == 1:
        ident, text = held[0], tail
    if decision not in DECISIONS or not ident:
        raise GrammarError(f"say {', '.join(DECISIONS)}, and which; waiting: {', '.join(held) or 'none'}")
    fields = {"agent": context.agent, "generation": ident, "decision": decision, "text": text.strip()}
    return cmd.DecidePlans.model_validate(fields)


def _held(context: Context) -> list[tuple[str, str]]:
    generations = context.state.generations.values() if context.state else ()
    return [(each.id, each.goal) for each in generations if each.stage is GenerationStage.HELD]


def _decisions(context: Context) -> list[tuple[str, str]]:
    return [(f"{how} {ident}", f"plans for {goal}") for ident, goal in _held(context) for how in DECISIONS]


def _goals(context: Context) -> list[tuple[str, str]]:
    return [(goal.id, goal.text) for goal in context.state.goals.values()] if context.state else []


async def _show_plans(host: CommandHost, _values: Values) -> Answer:
    state = await host.engine.view(chosen_agent(host))
    waiting = [asdict(each) for each in state.generations.values() if each.stage is GenerationStage.HELD]
    plans = [asdict(plan) for plan in state.generated]
    return 0, {"plans": plans, "waiting": waiting}, generated_text(state)


def generated_text(state: AgentState | None, *, short: bool = False) -> str:
    """The plans that models made for an agent, as `.asl` with their provenance; or in a line."""
    plans = state.generated if state is not None else ()
    if short or not plans:
        names = ", ".join(f"{plan.label} ({_proof(plan)})" for plan in plans)
        return names or "no plans wait for your approval, and none were generated"
    return "\n\n".join(
        f"// generated for {plan.goal} by {plan.model}; {plan.generation}, {_proof(plan)}\n{plan.text}"
        for plan in plans
    )


def _proof(plan: GeneratedPlan) -> str:
    return "verified" if plan.verified else f"{plan.succeeded} of {plan.steps} steps have worked"


QUESTION = Rest(
    "question",
    "a subject",
    optional=True,
    shown="[EVENT|ACTION|STEP|GOAL|BELIEF|error|FILE] [forward|wrong]",
    parse=split_direction,
    offers=_subjects,
    default=("", "backward"),
)
SWITCHES = pairs(("on", "every change"), ("off", "only what the panes need"))
ON_OFF = among(("on", "off"), "say on or off")
SURE = among(("yes",), "only 'yes' may follow, which takes the beliefs back; not '{}'")
COMMANDS = (
    command("believe", Submit(_believe), Rest("belief", "a key", shown="KEY VALUE", offers=_beliefs)),
    command("forget", Submit(_forget), Rest("belief", "a key", shown="KEY", offers=_beliefs)),
    command(
        "query", Show(late("mind_query:query_answer"), "query"), Rest("formula", "a formula", shown="FORMULA")
    ),
    command(
        "intention",
        Submit(_intention),
        Rest("what", "an intention", shown="N suspend|resume|drop|fail [REASON]", offers=_intentions),
    ),
    command("trace", cmd.SetTracing, Word("on", "on or off", shown="on|off", parse=ON_OFF, offers=SWITCHES)),
    command(
        "plans",
        Submit(_decide_plans),
        Rest("what", "a decision", shown="[approve|reject|again ID [TEXT]]", offers=_decisions),
        forms=(Form(Show(_show_plans, view="plans"), when=r"\Z"),),
    ),
    command("world", Show(view="world")),
    command("meta background", Show(view="meta")),
    command("context", Show(view="context")),
    command("why", Show(show_why), QUESTION),
    Group("Plan")(
        "drift",
        Show(late("why:show_drift"), "drift"),
        Word("goal", "a goal", True, parse=_known_goal, offers=_goals),
    ),
    command(
        "wrong",
        Show(late("disputes:dispute_answer"), "mark", {"lifted": False}, changes=True),
        Word("subject", _subject("wrong"), shown="EVENT|ACTION|BELIEF|error"),
        Rest("reason", "a reason", optional=True, default=""),
    ),
    command(
        "right",
        Show(late("disputes:dispute_answer"), "mark", {"reason": "", "lifted": True}, changes=True),
        Rest("subject", _subject("right"), shown="EVENT", parse=_first_word, offers=_marked),
    ),
    command(
        "retract",
        Show(late("disputes:retract_answer"), "retract subject", changes=True),
        Word("subject", _subject("retract"), shown="EVENT", offers=_marked),
        Rest("yes", "yes", optional=True, shown="[yes]", parse=SURE),
    ),
)
