"""The words of the command bar for agents that hand work to each other (ontology spec §4, "Commands").

Handoffs begin with `h-`, requests with `hr-`; a unique beginning is enough. Ids that nobody has are answered
with the three nearest, where the crew is open; else the crew's manager answers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from app.verb import Choices, Context, GrammarError, Intent, Local, Reader, Verb, only, split_word, word
from engine.domain import crew_commands as cc

if TYPE_CHECKING:
    from engine.agents.human import HumanRequest
    from engine.crew.state import CrewState

C = TypeVar("C", bound=cc.ForCrew)
HANDOFF, REQUEST = "h-", "hr-"
VERSIONS, RUNS = "--versions", "--all"
ALL = "handoffs"
"""What `cancel` takes for all of the session."""
GUIDED = "guided"
"""How the reasons of guided steps begin."""
_SETTING = re.compile(r"\s+(for|against|rounds|judge|agent)=(\S+)\s*\Z", re.I)


# ------------------------------------------------------------------ reading arguments


def near(wanted: str, known: Collection[str]) -> str:
    """The three ids that are most like one, in words."""
    found = difflib.get_close_matches(wanted, list(known), n=3, cutoff=0.0)
    return f"the nearest: {', '.join(found)}" if found else "there is none yet"


def _agent(name: str, context: Context) -> str:
    crew, wanted = context.crew, name.lower()
    if crew is not None and wanted not in crew.agents:
        raise GrammarError(f"no agent '{name[:40]}' is registered; {near(wanted, crew.agents)}")
    return wanted


def _named(what: str, name: str, known: Mapping[str, Any] | None) -> str:
    if known is None or name in known:
        return name
    found = [one for one in known if one.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise GrammarError(f"'{name[:40]}' begins several: {', '.join(found[:3])}")
    raise GrammarError(f"there is no {what} '{name[:40]}'; {near(name, known)}")


def _handoff(name: str, context: Context) -> str:
    return _named("handoff", name, context.crew.handoffs if context.crew is not None else None)


def _priority(rest: str) -> tuple[int, str]:
    """The priority before a task, `!1` to `!3`, and the rest."""
    match = re.match(r"!([1-3])\s+(.*)", rest, re.S)
    if match is None and rest.startswith("!"):
        raise GrammarError("priorities are !1 normal, !2 high, !3 urgent")
    return (int(match[1]), match[2]) if match else (1, rest)


def _task(rest: str) -> str:
    if not rest:
        raise GrammarError("the task is missing")
    return rest


def _read_agents(rest: str, context: Context) -> Intent:
    if rest not in ("", VERSIONS, RUNS):
        raise GrammarError(f"agents takes {VERSIONS}, {RUNS} or nothing; '{rest[:40]}' is too much")
    return Local("agents", rest)


def _read_delegate(rest: str, context: Context) -> Intent:
    priority, rest = _priority(rest)
    agent, task = word(rest, "an agent")
    return cc.Delegate(to=_agent(agent, context), task=_task(task), priority=priority)


def _read_several(make: Callable[..., cc.Parallel | cc.Sequence]) -> Reader:
    def read(rest: str, context: Context) -> Intent:
        priority, rest = _priority(rest)
        match = re.match(r"([^\s,]+(?:\s*,\s*[^\s,]+)*)\s*(.*)", rest, re.S)
        if match is None:
            raise GrammarError("agents are missing: a,b,c")
        names = [one for one in re.split(r"[\s,]+", match[1]) if one]
        agents = tuple(dict.fromkeys(_agent(one, context) for one in names))
        return make(to=agents, task=_task(match[2]), priority=priority)

    return read


def _read_transfer(rest: str, context: Context) -> Intent:
    agent, reason = word(rest, "an agent")
    return cc.Transfer(to=_agent(agent, context), reason=reason)


def _read_take(rest: str, context: Context) -> Intent:
    if rest not in ("", "back"):
        raise GrammarError(f"take back gives the floor back; '{rest[:40]}' is too much")
    return cc.TakeBack()


def _read_debate(rest: str, context: Context) -> Intent:
    given: dict[str, str] = {}
    while (match := _SETTING.search(rest)) is not None:
        given.setdefault(match[1].lower(), match[2])
        rest = rest[: match.start()]
    motion = rest.strip()
    if motion[:1] in ("'", '"') and motion[-1:] == motion[:1] and len(motion) > 1:
        motion = motion[1:-1]
    if not motion:
        raise GrammarError('the motion is missing: debate "we should go on" for=AGENT against=AGENT')
    if ("for" in given) != ("against" in given):
        raise GrammarError("a debate has two sides: for=AGENT against=AGENT, or neither")
    if not given.get("rounds", "2").isdecimal():
        raise GrammarError("rounds is a number from 1 to 4")
    sides = {name: _agent(given[name], context) for name in ("for", "against", "agent") if name in given}
    fields = {
        "pro": sides.get("for", ""),
        "con": sides.get("against", ""),
        "agent_id": sides.get("agent", ""),
    }
    judge = {"judge": given["judge"].lower()} if "judge" in given else {}
    return cc.Debate.model_validate(
        {"motion": motion, "rounds": int(given.get("rounds", 2)), **fields, **judge}
    )


def _read_guided(rest: str, context: Context) -> Intent:
    how, rest = word(rest, "start or resume")
    name, task = word(rest, "an agent")
    if how == "start":
        agent = _agent(name, context)
        return cc.Delegate(to=agent, task=task or f"go through {agent} with the operator")
    if how != "resume" or task:
        raise GrammarError("guided start AGENT [TASK], or guided resume AGENT|HANDOFF")
    return _resumed(name, context)


def _resumed(name: str, context: Context) -> Intent:
    """A guided handoff goes on: one that is paused runs again, one that waits for an answer is shown."""
    crew = context.crew
    if name.startswith(HANDOFF):
        found = _handoff(name, context)
    else:
        agent = _agent(name, context)
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
    request = context.crew.requests[_named("request", name, context.crew.requests)]
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
    return cc.DismissRequest(request=_named("request", name, known), reason=reason)


def _read_takeover(rest: str, context: Context) -> Intent:
    name, text = word(rest, "a handoff")
    return (
        cc.TakeOver(handoff=_handoff(name, context), text=text)
        if text
        else Local("takeover", _handoff(name, context))
    )


def _read_cancel(rest: str, context: Context) -> Intent:
    if rest == ALL:
        return cc.CancelHandoff(reason="cancelled by the operator")
    name, reason = word(rest, "a handoff")
    return cc.CancelHandoff(handoff=_handoff(name, context), reason=reason or "cancelled by the operator")


def _read_urgency(rest: str, context: Context) -> Intent:
    name, number = word(rest, "a handoff")
    if number not in ("1", "2", "3"):
        raise GrammarError("a handoff's priority is 1 normal, 2 high or 3 urgent")
    return cc.SetPriority(handoff=_handoff(name, context), priority=int(number))


def _plain(make: Callable[..., C]) -> Reader:
    return lambda rest, context: make(handoff=_handoff(only(rest, "a handoff"), context))


ON_HANDOFFS: Mapping[str, Reader] = {
    "cancel": _read_cancel,
    "retry": _plain(cc.RetryHandoff),
    "priority": _read_urgency,
    "pause": _plain(cc.PauseHandoff),
    "run": _plain(cc.ResumeHandoff),
}
"""Verbs of agents of the engine that mean a handoff where one is named; `resume` is a name of `run`."""


def or_handoff(verb: Verb) -> Verb:
    """A verb that takes a handoff, too."""
    read, choices, mine = verb.read, verb.choices, ON_HANDOFFS[verb.name]

    def either(rest: str, context: Context) -> Intent:
        return (mine if rest.startswith(HANDOFF) or rest == ALL else read)(rest, context)

    def both(context: Context) -> Iterable[tuple[str, str]]:
        return [*choices(context), *_handoffs(context)]

    usage = f"{verb.usage} | {verb.name} HANDOFF" + (" 1|2|3" if verb.name == "priority" else "")
    return replace(verb, read=either, choices=both, usage=usage)


# ------------------------------------------------------------------ choices for completion


def _each(context: Context, pick: Callable[[CrewState], Iterable[tuple[str, str]]]) -> list[tuple[str, str]]:
    return list(pick(context.crew)) if context.crew is not None else []


def _agents(*kinds: str, before: str = "") -> Choices:
    def choices(context: Context) -> Iterable[tuple[str, str]]:
        return _each(
            context,
            lambda crew: (
                (f"{before}{one.spec.id}", f"{one.spec.type}: {one.spec.description[:60]}")
                for one in crew.agents.values()
                if not kinds or one.spec.type in kinds
            ),
        )

    return choices


def _handoffs(context: Context) -> Iterable[tuple[str, str]]:
    return _each(
        context,
        lambda crew: (
            (one.id, f"{one.agent} {one.state.words}: {one.context.task_description[:50]}")
            for one in reversed(list(crew.handoffs.values())[-60:])
        ),
    )


def _open(context: Context) -> Iterable[tuple[str, str]]:
    return _each(
        context,
        lambda crew: ((one.id, f"{one.agent} {one.state.words}: {one.context.task_description[:50]}")
                      for one in crew.open()),
    )  # fmt: skip


def _requests(context: Context) -> Iterable[tuple[str, str]]:
    return _each(
        context, lambda crew: ((one.id, f"{one.agent_id}: {one.title}") for one in crew.open_requests())
    )


def _guided(context: Context) -> Iterable[tuple[str, str]]:
    waiting = _each(
        context,
        lambda crew: (
            (f"resume {one.id}", f"{one.agent} {one.state.words}")
            for one in crew.open()
            if one.spec is not None and one.spec.type == "guided"
        ),
    )
    return [*_agents("guided", before="start ")(context), *waiting]


# ------------------------------------------------------------------ the table

_TALKERS = ("role", "guided")

SHOWS = frozenset({"fleet", "handoffs", "handoff", "agents", "select", "takeover"})
"""What is answered without a command."""
VERBS: tuple[Verb, ...] = (
    Verb("fleet", "fleet [AGENT]", "all agents, who needs you first; what they ask is answered in place",
         lambda rest, c: Local("fleet", _agent(only(rest, "an agent"), c) if rest else ""), "Crew",
         choices=_agents()),
    Verb("handoffs", "handoffs [HANDOFF]", "who handed what to whom, as trees with bars of time",
         lambda rest, c: Local("handoffs", _handoff(rest, c) if rest else ""), "Crew", choices=_handoffs),
    Verb("agents", "agents [--versions|--all]",
         "the agents that take work, with their kinds and how they did; all: their runs too",
         _read_agents, "Crew", choices=lambda _c: [(VERSIONS, "all versions"), (RUNS, "ended runs too")]),
    Verb("delegate", "delegate [!PRIORITY] AGENT TASK", "hand a task to an agent; you keep the conversation",
         _read_delegate, "Crew", choices=_agents()),
    Verb("transfer", "transfer AGENT [REASON]", "let a role or a guided agent speak with you from now on",
         _read_transfer, "Crew", choices=_agents(*_TALKERS)),
    Verb("take", "take back", "give the floor back to whoever had it before", _read_take, "Crew",
         aliases=("take_back",), choices=lambda _c: [("back", "the floor goes back")]),
    Verb("say", "say TEXT", "say something to the agent that has the floor",
         lambda rest, c: cc.Say(text=rest), "Crew"),
    Verb("parallel", "parallel [!PRIORITY] A,B,C TASK", "hand one task to several agents at once",
         _read_several(cc.Parallel), "Crew", choices=_agents()),
    Verb("sequence", "sequence [!PRIORITY] A,B,C TASK", "one agent after the other, each with what was found",
         _read_several(cc.Sequence), "Crew", choices=_agents()),
    Verb("debate", 'debate "MOTION" [for=A against=B] [rounds=N] [judge=J] [agent=ID]', "have a motion "
         "argued by two sides and judged", _read_debate, "Crew"),
    Verb("guided", "guided start AGENT [TASK] | guided resume AGENT|HANDOFF", "go through a guided agent's "
         "steps, or go on with them", _read_guided, "Crew", choices=_guided),
    Verb("select", "select TEXT", "which agent fits a text, and why",
         lambda rest, c: Local("select", _task(rest)), "Crew"),
    Verb("answer", "answer REQUEST NUMBER|TEXT", "answer what an agent asks", _read_answer, "Crew",
         choices=_requests),
    Verb("dismiss", "dismiss REQUEST [REASON]", "give no answer; whoever waits for it fails", _read_dismiss,
         "Crew", choices=_requests),
    Verb("takeover", "takeover HANDOFF [TEXT]", "write a handoff's result by hand", _read_takeover, "Crew",
         aliases=("take_over",), choices=_open),
    Verb("agent_enable", "agent_enable AGENT", "let an agent take work again",
         lambda rest, c: cc.EnableAgent(who=_agent(only(rest, "an agent"), c)), "Crew", choices=_agents()),
    Verb("agent_disable", "agent_disable AGENT", "let an agent take no more work; what runs goes on",
         lambda rest, c: cc.EnableAgent(who=_agent(only(rest, "an agent"), c), enabled=False), "Crew",
         choices=_agents()),
    Verb("agent_remove", "agent_remove AGENT", "take a registered agent out; its history stays",
         lambda rest, c: cc.RemoveAgent(who=_agent(only(rest, "an agent"), c)), "Crew", choices=_agents()),
)  # fmt: skip
