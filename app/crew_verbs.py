"""The words of the command bar for agents that hand work to each other (ontology spec §4, "Commands").

Handoffs begin with `h-`, requests with `hr-`; a unique beginning is enough. Ids that nobody has are answered
with the three nearest, where the crew is open; else the crew's manager answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from app import crew_choices as offer
from app.crew_reading import (
    BROUGHT,
    OF_DEBATES,
    STEP,
    agent_in,
    brought,
    handoff_in,
    named_in,
    near,
    priority_before,
    settings_behind,
    task_in,
)
from app.verb import Context, GrammarError, Intent, Local, Reader, Verb, only, split_word, word
from engine.domain import crew_commands as cc

if TYPE_CHECKING:
    from engine.agents.human import HumanRequest

C = TypeVar("C", bound=cc.ForCrew)
HANDOFF = "h-"
VERSIONS, RUNS = "--versions", "--all"
ALL = "handoffs"
"""What `cancel` takes for all of the session."""
GUIDED = "guided"
"""How the reasons of guided steps begin."""


def _read_agents(rest: str, context: Context) -> Intent:
    if rest not in ("", VERSIONS, RUNS):
        raise GrammarError(f"agents takes {VERSIONS}, {RUNS} or nothing; '{rest[:40]}' is too much")
    return Local("agents", rest)


def _read_delegate(rest: str, context: Context) -> Intent:
    priority, rest = priority_before(rest)
    agent, task = word(rest, "an agent")
    task, found = settings_behind(task, (*BROUGHT, STEP))
    to = agent_in(agent, context)
    spec = context.crew.agents[to].spec if context.crew is not None else None
    if STEP in found and spec is not None and not (spec.phases or spec.debate):
        raise GrammarError(f"step= goes with a pipeline or a debate; {to} is of type {spec.type}")
    return cc.Delegate(to=to, task=task_in(task), priority=priority, **brought(found))


def _read_several(make: Callable[..., cc.Parallel | cc.Sequence]) -> Reader:
    def read(rest: str, context: Context) -> Intent:
        priority, rest = priority_before(rest)
        match = re.match(r"([^\s,]+(?:\s*,\s*[^\s,]+)*)\s*(.*)", rest, re.S)
        if match is None:
            raise GrammarError("agents are missing: a,b,c")
        names = [one for one in re.split(r"[\s,]+", match[1]) if one]
        agents = tuple(dict.fromkeys(agent_in(one, context) for one in names))
        task, found = settings_behind(match[2], BROUGHT)
        return make(to=agents, task=task_in(task), priority=priority, **brought(found))

    return read


def _read_transfer(rest: str, context: Context) -> Intent:
    if rest.strip().lower() == "back":
        return cc.TakeBack()
    agent, reason = word(rest, "an agent")
    return cc.Transfer(to=agent_in(agent, context), reason=reason)


def _read_take(rest: str, context: Context) -> Intent:
    if rest not in ("", "back"):
        raise GrammarError(f"take back gives the floor back; '{rest[:40]}' is too much")
    return cc.TakeBack()


def _read_debate(rest: str, context: Context) -> Intent:
    motion, given = settings_behind(rest, OF_DEBATES)
    if motion[:1] in ("'", '"') and motion[-1:] == motion[:1] and len(motion) > 1:
        motion = motion[1:-1]
    if not motion:
        raise GrammarError('the motion is missing: debate "we should go on" for=AGENT against=AGENT')
    if ("for" in given) != ("against" in given):
        raise GrammarError("a debate has two sides: for=AGENT against=AGENT, or neither")
    if "for" not in given and "judge" in given:
        raise GrammarError("judge= goes with for= and against=; a registered debate has its own judge")
    if "for" in given and "agent" in given:
        raise GrammarError("agent= has its own sides: name it, or for= and against=")
    if given.get("rounds", "2") not in ("1", "2", "3", "4"):
        raise GrammarError("rounds is a number from 1 to 4")
    sides = {name: agent_in(given[name], context) for name in ("for", "against", "agent") if name in given}
    fields = {
        "pro": sides.get("for", ""),
        "con": sides.get("against", ""),
        "agent_id": sides.get("agent", ""),
    }
    judge = agent_in(given["judge"], context) if "judge" in given else ""
    rounds = int(given["rounds"]) if "rounds" in given else None
    return cc.Debate.model_validate(
        {"motion": motion, "rounds": rounds, "judge": judge, **fields, **brought(given)}
    )


def _read_guided(rest: str, context: Context) -> Intent:
    how, rest = word(rest, "start or resume")
    name, task = word(rest, "an agent")
    if how == "start":
        agent = agent_in(name, context)
        entry = context.crew.agents[agent] if context.crew is not None else None
        if entry is not None and entry.spec.type != "guided":
            raise GrammarError(f"{agent} is of type {entry.spec.type} and not guided; delegate {agent} TASK")
        task, found = settings_behind(task, BROUGHT)
        words = task or f"go through {agent} with the operator"
        return cc.Delegate(to=agent, task=words, **brought(found))
    if how != "resume" or task:
        raise GrammarError("guided start AGENT [TASK], or guided resume AGENT|HANDOFF")
    return _resumed(name, context)


def _resumed(name: str, context: Context) -> Intent:
    """A guided handoff goes on: one that is paused runs again, one that waits for an answer is shown."""
    crew = context.crew
    if name.startswith(HANDOFF):
        found = handoff_in(name, context)
    else:
        agent = agent_in(name, context)
        of_agent = [one for one in crew.open() if one.agent == agent] if crew is not None else []
        if crew is None or not of_agent:
            raise GrammarError(f"nothing of {agent} is open; guided start {agent} begins anew")
        found = of_agent[-1].id
    if crew is not None and crew.handoffs[found].state == "waiting_human":
        return Local("handoff", found)
    return cc.ResumeHandoff(handoff=found)


def answer_to(request: HumanRequest, option: int, text: str) -> cc.ForCrew:
    """The command that answers a request.

    Args:
        request: an open one.
        option: the number of one of its options from 1; 0 for none.
        text: what is said besides, or instead.
    """
    if request.reason_code.startswith(GUIDED) and request.handoff_id is not None and not option:
        return cc.GuidedMove(handoff=request.handoff_id, move="answer", value=text)
    return cc.AnswerRequest(
        request=request.id, option=request.options[option - 1].id if option else "", text=text
    )


def _read_answer(rest: str, context: Context) -> Intent:
    name, said = word(rest, "a request")
    if not said:
        raise GrammarError("the answer is missing: a number, or a text")
    number, _, text = split_word(said)
    if context.crew is None:
        chosen = number if number.isdecimal() else ""
        return cc.AnswerRequest(request=name, option=chosen, text=text.strip() if chosen else said)
    request = context.crew.requests[named_in("request", name, context.crew.requests)]
    if request.state != "open":
        raise GrammarError(f"{request.id} is {request.state} already")
    if number.isdecimal() and 1 <= int(number) <= len(request.options):
        return answer_to(request, int(number), text.strip())
    if number.isdecimal() and not text and not request.allow_free_text:
        raise GrammarError(f"{request.id} has answers 1 to {len(request.options)}")
    return answer_to(request, 0, said)


def _read_dismiss(rest: str, context: Context) -> Intent:
    name, reason = word(rest, "a request")
    known = context.crew.requests if context.crew is not None else None
    return cc.DismissRequest(request=named_in("request", name, known), reason=reason)


def _read_idea(rest: str, context: Context) -> Intent:
    how, rest = word(rest, "take or drop")
    name, rest = word(rest, "an idea")
    idea = named_in("idea", name, context.crew.ideas if context.crew is not None else None)
    if how == "drop":
        return cc.DropIdea(idea=idea, reason=rest)
    if how != "take":
        raise GrammarError(f"an idea is taken up or dropped; '{how[:40]}' is neither")
    who = only(rest, "an agent").lower() if rest else context.agent
    if not who:
        raise GrammarError("an agent is missing: who is to take it up")
    registered = context.crew.agents if context.crew is not None else ()
    if rest and who in registered:
        return cc.TakeIdea(idea=idea, to=who)
    if who not in context.agents:
        raise GrammarError(f"there is no agent '{who[:40]}'; {near(who, [*registered, *context.agents])}")
    return cc.TakeIdea(idea=idea, goal_of=who)


def _read_takeover(rest: str, context: Context) -> Intent:
    name, text = word(rest, "a handoff")
    return (
        cc.TakeOver(handoff=handoff_in(name, context), text=text)
        if text
        else Local("takeover", handoff_in(name, context))
    )


def _read_cancel(rest: str, context: Context) -> Intent:
    if rest == ALL:
        return cc.CancelHandoff(reason="cancelled by the operator")
    name, reason = word(rest, "a handoff")
    return cc.CancelHandoff(handoff=handoff_in(name, context), reason=reason or "cancelled by the operator")


def _read_urgency(rest: str, context: Context) -> Intent:
    name, number = word(rest, "a handoff")
    if number not in ("1", "2", "3"):
        raise GrammarError("a handoff's priority is 1 normal, 2 high or 3 urgent")
    return cc.SetPriority(handoff=handoff_in(name, context), priority=int(number))


def _read_step(rest: str, context: Context) -> Intent:
    name, how = word(rest, "a handoff")
    if how not in ("", "on", "off"):
        raise GrammarError(f"step mode is on or off; '{how[:40]}' is neither")
    return cc.StepMode(handoff=handoff_in(name, context), on=how != "off")


def _plain(make: Callable[..., C]) -> Reader:
    return lambda rest, context: make(handoff=handoff_in(only(rest, "a handoff"), context))


ON_HANDOFFS: Mapping[str, Reader] = {
    "cancel": _read_cancel,
    "retry": _plain(cc.RetryHandoff),
    "priority": _read_urgency,
    "pause": _plain(cc.PauseHandoff),
    "run": _plain(cc.ResumeHandoff),
    "step": _read_step,
}
"""Verbs of agents of the engine that mean a handoff where one is named; `resume` is a name of `run`."""
_BEHIND = {"priority": " 1|2|3", "step": " [on|off]"}
"""What follows a handoff's name."""


_MEANS = {"step": "halt after each of its parts, and ask how it goes on"}
"""What the verb means there, where that is another thing."""


def or_handoff(verb: Verb) -> Verb:
    """A verb that takes a handoff, too."""
    read, choices, mine = verb.read, verb.choices, ON_HANDOFFS[verb.name]

    def either(rest: str, context: Context) -> Intent:
        return (mine if rest.startswith(HANDOFF) or rest == ALL else read)(rest, context)

    def both(context: Context) -> Iterable[tuple[str, str]]:
        return [
            *choices(context),
            *(offer.halting(context) if verb.name == "step" else offer.handoffs(context)),
        ]

    usage = f"{verb.usage} | {verb.name} HANDOFF{_BEHIND.get(verb.name, '')}"
    about = f"{verb.help}; of a handoff: {_MEANS[verb.name]}" if verb.name in _MEANS else verb.help
    return replace(verb, read=either, choices=both, usage=usage, help=about)


# ------------------------------------------------------------------ the table

_TALKERS = ("role", "guided")

SHOWS = frozenset({"fleet", "handoffs", "handoff", "agents", "select", "takeover", "ideas"})
"""What is answered without a command."""
VERBS: tuple[Verb, ...] = (
    Verb("fleet", "fleet [AGENT]", "all agents, who needs you first; what they ask is answered in place",
         lambda rest, c: Local("fleet", agent_in(only(rest, "an agent"), c) if rest else ""), "Crew",
         choices=offer.agents()),
    Verb("handoffs", "handoffs [HANDOFF]", "who handed what to whom, as trees with bars of time",
         lambda rest, c: Local("handoffs", handoff_in(rest, c) if rest else ""), "Crew",
         choices=offer.handoffs),
    Verb("agents", "agents [--versions|--all]",
         "the agents that take work, with their kinds and how they did; all: their runs too",
         _read_agents, "Crew", choices=lambda _c: [(VERSIONS, "all versions"), (RUNS, "ended runs too")]),
    Verb("delegate", 'delegate [!PRIORITY] AGENT TASK [given="…"] [sources=A,B] [step=on]', "hand a task to "
         "an agent, with data to be checked and texts to be quoted: files of the sandbox, or handoffs",
         _read_delegate, "Crew", choices=offer.agents(), values=offer.of_work),
    Verb("transfer", "transfer AGENT [REASON]", "let a role or a guided agent speak with you from now on",
         _read_transfer, "Crew", choices=offer.agents(*_TALKERS)),
    Verb("take", "take back", "give the floor back to whoever had it before", _read_take, "Crew",
         aliases=("take_back",), choices=lambda _c: [("back", "the floor goes back")]),
    Verb("say", "say TEXT", "say something to the agent that has the floor",
         lambda rest, c: cc.Say(text=rest), "Crew"),
    Verb("ideas", "ideas [AGENT]", "the ideas that roles have parked for later",
         lambda rest, c: Local("ideas", agent_in(only(rest, "an agent"), c) if rest else ""), "Crew",
         choices=offer.agents("role")),
    Verb("idea", "idea take IDEA [AGENT] | idea drop IDEA [REASON]", "take a parked idea up, as work of a "
         "registered agent or as a goal of yours, or drop it", _read_idea, "Crew", choices=offer.ideas,
         more=(lambda _c: (), offer.anybody)),
    Verb("parallel", "parallel [!PRIORITY] A,B,C TASK [given=…] [sources=…]", "hand one task to several "
         "agents at once", _read_several(cc.Parallel), "Crew", choices=offer.agents(), values=offer.of_work),
    Verb("sequence", "sequence [!PRIORITY] A,B,C TASK [given=…] [sources=…]", "one agent after the other, "
         "each with what was found", _read_several(cc.Sequence), "Crew", choices=offer.agents(),
         values=offer.of_work),
    Verb("debate", 'debate "MOTION" [for=A against=B [judge=J]] [agent=ID] [rounds=N] [step=on] [sources=…]',
         "have a motion argued by its sides and judged; step=on asks you after each round", _read_debate,
         "Crew", values=offer.of_debate),
    Verb("guided", "guided start AGENT [TASK] | guided resume AGENT|HANDOFF", "go through a guided agent's "
         "steps, or go on with them", _read_guided, "Crew", choices=offer.guided),
    Verb("select", "select TEXT", "which agent fits a text, and why",
         lambda rest, c: Local("select", task_in(rest)), "Crew"),
    Verb("answer", "answer REQUEST NUMBER|TEXT", "answer what an agent asks", _read_answer, "Crew",
         choices=offer.requests),
    Verb("dismiss", "dismiss REQUEST [REASON]", "give no answer; whoever waits for it fails", _read_dismiss,
         "Crew", choices=offer.requests),
    Verb("takeover", "takeover HANDOFF [TEXT]", "write a handoff's result by hand", _read_takeover, "Crew",
         aliases=("take_over",), choices=offer.opened),
    Verb("agent_enable", "agent_enable AGENT", "let an agent take work again",
         lambda rest, c: cc.EnableAgent(who=agent_in(only(rest, "an agent"), c)), "Crew",
         choices=offer.agents()),
    Verb("agent_disable", "agent_disable AGENT", "let an agent take no more work; what runs goes on",
         lambda rest, c: cc.EnableAgent(who=agent_in(only(rest, "an agent"), c), enabled=False), "Crew",
         choices=offer.agents()),
    Verb("agent_remove", "agent_remove AGENT", "take a registered agent out; its history stays",
         lambda rest, c: cc.RemoveAgent(who=agent_in(only(rest, "an agent"), c)), "Crew",
         choices=offer.agents()),
)  # fmt: skip
