"""Commands about agents that hand work to each other: delegating, debates, guided sessions, handoffs,
requests, ideas.

Handoffs begin with `h-`, requests with `hr-`; a unique beginning is enough.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from app.commands import crew_arguments as args
from app.commands.arguments import REASON, Rest, Setting, Word, among, pairs, split_word
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
    late,
)
from engine.core import crew_commands as cc

if TYPE_CHECKING:
    from engine.crew.ontology.context import HumanRequest

GUIDED = "guided"
"""How the reasons of guided steps begin."""
TALKERS = ("role", "guided")


def _delegate(context: Context, values: Values) -> cc.Delegate:
    agent = values["to"]
    entry = context.crew.agents.get(agent) if context.crew is not None else None
    spec = entry.spec if entry is not None else None
    if "step" in values and spec is not None and not (spec.phases or spec.debate):
        raise GrammarError(f"step= goes with a pipeline or a debate; {agent} is of type {spec.type}")
    return cc.Delegate(
        to=agent, task=values["task"], priority=values.get("priority", 1), **args.parse_sources(values)
    )


def _several(make: Callable[..., cc.Parallel | cc.Sequence]) -> Submit:
    def command_of(_context: Context, values: Values) -> cc.Parallel | cc.Sequence:
        agents, task = values["work"]
        return make(to=agents, task=task, priority=values.get("priority", 1), **args.parse_sources(values))

    return Submit(command_of)


def _debate(context: Context, values: Values) -> cc.Debate:
    motion = values["motion"]
    if motion[:1] in ("'", '"') and motion[-1:] == motion[:1] and len(motion) > 1:
        motion = motion[1:-1]
    if not motion:
        raise GrammarError('the motion is missing: debate "we should go on" for=AGENT against=AGENT')
    if ("for" in values) != ("against" in values):
        raise GrammarError("a debate has two sides: for=AGENT against=AGENT, or neither")
    if "for" not in values and "judge" in values:
        raise GrammarError("judge= goes with for= and against=; a registered debate has its own judge")
    if "for" in values and "agent" in values:
        raise GrammarError("agent= has its own sides: name it, or for= and against=")
    if values.get("rounds", "2") not in ("1", "2", "3", "4"):
        raise GrammarError("rounds is a number from 1 to 4")
    named = {"for": "pro", "against": "con", "agent": "agent_id", "judge": "judge"}
    fields = {
        field: args.parse_agent(values[name], context) if name in values else ""
        for name, field in named.items()
    }
    rounds = int(values["rounds"]) if "rounds" in values else None
    return cc.Debate.model_validate(
        {"motion": motion, "rounds": rounds, **fields, **args.parse_sources(values)}
    )


def _start_guided(context: Context, values: Values) -> cc.Delegate:
    agent = values["agent"]
    entry = context.crew.agents.get(agent) if context.crew is not None else None
    if entry is not None and entry.spec.type != "guided":
        raise GrammarError(f"{agent} is of type {entry.spec.type} and not guided; delegate {agent} TASK")
    task = values.get("task") or f"go through {agent} with the operator"
    return cc.Delegate(to=agent, task=task, **args.parse_sources(values))


def _guided_handoff(name: str, context: Context) -> str:
    """The guided handoff that is resumed: a handoff's id, or an agent's newest open one."""
    crew = context.crew
    if name.startswith("h-"):
        return args.parse_handoff(name, context)
    agent = args.parse_agent(name, context)
    handoffs = [handoff for handoff in crew.open() if handoff.agent == agent] if crew is not None else []
    if not handoffs:
        raise GrammarError(f"nothing of {agent} is open; guided start {agent} begins anew")
    return handoffs[-1].id


def resume_guided(host: CommandHost, values: Values) -> Awaitable[Answer | None] | Answer | None:
    """A guided handoff continues: one that is paused runs again, one that waits for an answer is shown."""
    crew, handoff = host.context.crew, values["handoff"]
    if crew is not None and crew.handoffs[handoff].state == "waiting_human":
        return Show(late("crew_runner:show_handoffs"), "handoff")(host, values)
    return host.submit(cc.ResumeHandoff(handoff=handoff))


def answer_to(request: HumanRequest, option: int, text: str) -> cc.ForCrew:
    """The command that answers a request.

    Args:
        request: an open one.
        option: the number of one of its options from 1; 0 for none.
        text: a note to the option, or the answer where none is chosen.
    """
    chosen = request.options[option - 1].id if option else ""
    if request.reason_code.startswith(GUIDED) and request.handoff_id is not None:
        if not chosen:
            return cc.GuidedMove(handoff=request.handoff_id, move="answer", value=text)
        if chosen == "leave":
            return cc.GuidedMove(handoff=request.handoff_id, move="save")
    return cc.AnswerRequest(request=request.id, option=chosen, text=text)


def _answer(context: Context, values: Values) -> cc.ForCrew:
    name, answer = values["request"], values["answer"]
    number, _, text = split_word(answer)
    if context.crew is None:
        option = number if number.isdecimal() else ""
        return cc.AnswerRequest(request=name, option=option, text=text.strip() if option else answer)
    request = context.crew.requests[name]
    if request.state != "open":
        raise GrammarError(f"{request.id} is {request.state} already")
    if number.isdecimal() and 1 <= int(number) <= len(request.options):
        return answer_to(request, int(number), text.strip())
    return answer_to(request, 0, answer)


def _unknown_guided_verb(_text: str, _context: Context) -> str:
    raise GrammarError("guided start AGENT [TASK], or guided resume AGENT|HANDOFF")


def _take_back(_context: Context, _values: Values) -> cc.TakeBack:
    return cc.TakeBack()


def _no_text(_host: CommandHost, values: Values) -> Answer:
    return 2, {}, f"write the text behind it: takeover {values['handoff']} TEXT"


def _shows(what: str, view: str = "") -> Show:
    return Show(late(f"crew_runner:show_{what}"), view)


command = Group("Crew", "crew", late("crew_runner:preview_crew"))
REQUEST = Word("request", "a request", parse=args.parse_request, offers=args.request_choices)
ANYBODY = args.agent_choices()
WHICH = among((args.RUNS,), f"agents takes {args.RUNS} or nothing; '{{}}' is too much")
LISTS = pairs((args.RUNS, "ended runs too"))
BACK = among(("back",), "only back is expected; '{}' is too much")
ROUNDS = pairs(*((str(n), "rounds after the openings") for n in (1, 2, 3, 4)))
WORK = (
    args.NORMAL_TO_URGENT,
    Rest("work", "agents", shown="A,B,C TASK", parse=args.several_agents),
    *args.SOURCES,
    args.STEPS,
)
RESUMED = Word("handoff", "an agent", shown="AGENT|HANDOFF", parse=_guided_handoff)
OF_GUIDED = (args.agent_id("agent"), Rest("task", "a task", optional=True), *args.SOURCES)
COMMANDS = (
    command("fleet", _shows("agents", "fleet"), args.agent_id("agent", optional=True)),
    command(
        "handoffs",
        _shows("handoffs", "handoffs"),
        Word("handoff", "a handoff", True, parse=args.parse_handoff, offers=args.handoff_choices, default=""),
    ),
    command(
        "agents",
        _shows("agents"),
        Rest("which", "which", optional=True, shown="[--all]", parse=WHICH, offers=LISTS),
    ),
    command(
        "delegate",
        Submit(_delegate),
        *(args.NORMAL_TO_URGENT, args.agent_id(), args.TASK, *args.SOURCES, args.STEPS),
        choices=ANYBODY,
    ),
    command(
        "transfer",
        cc.Transfer,
        *(args.agent_id("to", *TALKERS), REASON),
        forms=(Form(Submit(_take_back), (Word("back", "back", shown="back"),), when=r"(?i)back\Z"),),
    ),
    command(
        "take take_back",
        Submit(_take_back),
        Rest(
            "back",
            "back",
            optional=True,
            shown="back",
            parse=BACK,
            offers=pairs(("back", "to the one before")),
        ),
    ),
    command("say", cc.Say, Rest("text", "the text", optional=True, shown="TEXT", default="")),
    command("ideas", _shows("ideas"), args.agent_id("agent", "role", optional=True)),
    command("parallel", _several(cc.Parallel), *WORK, choices=ANYBODY),
    command("sequence", _several(cc.Sequence), *WORK, choices=ANYBODY),
    command(
        "debate",
        Submit(_debate),
        Rest("motion", "the motion", shown='"MOTION"'),
        *(Setting("for", "A", ANYBODY), Setting("against", "B", ANYBODY), Setting("judge", "J", ANYBODY)),
        *(
            Setting("agent", "ID", args.debate_agents),
            Setting("rounds", "N", ROUNDS),
            args.STEPS,
            *args.SOURCES,
        ),
    ),
    command(
        "guided",
        Show(),
        Rest("what", "start or resume", shown="start AGENT [TASK]", parse=_unknown_guided_verb),
        forms=(
            Form(Submit(_start_guided), OF_GUIDED, word="start"),
            Form(resume_guided, (RESUMED,), word="resume"),
        ),
        choices=args.guided_choices,
    ),
    command("select", _shows("selection", "select"), Rest("text", "the task", parse=args.parse_task)),
    command(
        "answer",
        Submit(_answer),
        *(REQUEST, Rest("answer", "the answer: a number, or a text,", shown="NUMBER|TEXT")),
    ),
    command("dismiss", cc.DismissRequest, REQUEST, REASON),
    command(
        "takeover take_over",
        cc.TakeOver,
        *(args.handoff_id(), Rest("text", "the text", shown="[TEXT]")),
        forms=(Form(Show(_no_text, view="takeover"), (args.handoff_id(),), when=r"\S+\s*\Z"),),
        choices=args.open_handoff_choices,
    ),
    command("agent_enable", cc.EnableAgent, args.agent_id("who")),
    command("agent_disable", Submit(cc.EnableAgent, {"enabled": False}), args.agent_id("who")),
    command("agent_remove", cc.RemoveAgent, args.agent_id("who")),
)
