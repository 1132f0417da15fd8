"""Talking with the operator: a question, a role's reply, what is known of the problem (§1.2, §1.7, §1.12)."""

from __future__ import annotations

import re

from engine.agents.clarity import SLOTS
from engine.agents.criteria import failed
from engine.agents.human import Answer, Option
from engine.agents.kinds import AgentType, Effect, ErrorCode, RequestKind
from engine.agents.methods import role
from engine.agents.spec import AgentSpec, Instructions
from engine.agents.values import InvalidError, Problem
from engine.crew.parts import Ask, Question
from engine.crew.tool.handing import alone
from engine.crew.tool.work import Work, done
from engine.domain.action import ToolResult
from engine.domain.running import AWAY, REPAIRS, ROLE, TURNS
from engine.domain.text import clean_line
from engine.thinkers.spec_tools import FORM

TURNS_KEPT = 10
TURN = "role.turn"
IDEA_LIMIT = 2_000
CONVERSATION = "conversation"
"""Reason code of a role's reply; what the operator says next is its answer."""
_YES = re.compile(
    r"^\s*(yes|yep|yeah|right|correct|exactly|ok(ay)?|confirmed?|that'?s (it|right|correct)|true)\b", re.I
)


async def escalate(work: Work) -> ToolResult:
    """Ask the operator what only a person can know or decide."""
    said = work.args
    try:
        kind = RequestKind(str(said.get("kind") or RequestKind.QUESTION))
    except ValueError as error:
        raise InvalidError("escalate", (Problem(path="kind", message=str(error)),)) from None
    question = str(said["question"])
    if kind is RequestKind.QUESTION and (known := await _role_knows(work, question)):
        return done(f"{known[0]}: {clean_line(known[1], limit=120)}", answer=known[1], by=known[0])
    labels = [clean_line(str(one), limit=200) for one in said.get("options") or () if str(one).strip()]
    options = tuple(Option(id=str(n), label=label, effect=Effect.RESUME) for n, label in enumerate(labels, 1))
    answer = await work.desk.ask(
        work.run,
        Question(
            kind=kind,
            reason_code="agent",
            title=clean_line(question, limit=80) or "a question",
            question=question,
            context=str(said.get("context") or ""),
            options=options,
        ),
    )
    told = answered(answer, options)
    return done(
        f"{answer.by}: {clean_line(told, limit=120)}", answer=told, option=answer.option_id, by=answer.by
    )


async def _role_knows(work: Work, question: str) -> tuple[str, str] | None:
    """The role that delegated, and its answer, where its conversation holds one (ontology spec §1.10)."""
    role_spec = work.desk.delegating_role(work.run)
    said_before = work.handoff.context.conversation.recent_messages
    if role_spec is None or not said_before or work.handoff.spec.type is AgentType.ROLE:
        return None
    ident = f"{role_spec.id[:56]}-knows"
    ask = Ask(
        ident,
        f"{work.handoff.spec.name} asks: {question}\n\nAnswer it only from what was said to you. Where that "
        "does not hold the answer, say so by `known: false`; nothing is to be guessed.",
        "the answer in a sentence",
        spec=AgentSpec(
            id=ident,
            name=role_spec.name,
            type=AgentType.OPERATOR,
            description=f"What {role_spec.name} knows from its conversation",
            model=role_spec.model,
            instructions=Instructions(system="Answer questions from the conversation that you are given."),
            handoff=alone(work.handoff.spec),
            selectable=False,
        ),
        metadata={FORM: _KNOWN, "call": f"{work.key}:role"},
    )
    result = await work.desk.delegate(work.run, ask)
    said = result.output.strip()
    return (role_spec.id, said) if result.success and result.data.get("known") is True and said else None


_KNOWN = {"type": "object", "properties": {"known": {"type": "boolean"}}, "required": ["known"]}


def answered(answer: Answer, options: tuple[Option, ...]) -> str:
    """An answer in words."""
    chosen = next((one.label for one in options if one.id == answer.option_id), "")
    return ": ".join(part for part in (chosen, answer.text) if part)


async def reply(work: Work) -> ToolResult:
    """Say something to the operator and wait for what they say next; it is looked at before it is shown."""
    state = state_of(work)
    text = str(work.args.get("text") or "").strip()
    flagged: list[str] = []
    if text or not work.beliefs.get(AWAY):
        wrong = failed(role.lint(text, ready=state.ready, rules=work.handoff.spec.role))
        flagged = [one.message for one in wrong]
        if flagged and (not work.repairs or not text):
            return work.sent_back(flagged, {"text": text})
        state = role.replied(state, text, flagged=bool(flagged))
    turns = [
        *(work.brief.kept(work.beliefs, TURNS) or ()),
        *([{"role": "assistant", "text": text}] if text else []),
    ]
    await work.keep(TURN, {ROLE: _json(state), TURNS: turns[-TURNS_KEPT:]}, "; ".join(flagged))
    if text and state.asks_how_to_go_on and state.questions % role.QUESTIONS_BEFORE_ASKING == 0:
        decided = await _how_to_go_on(work, state)
        if decided == "stop":
            why = "the operator ended the talk: the problem is still not clear"
            return await work.give(work.failing(ErrorCode.DISMISSED, why))
        turns.append({"role": "operator", "text": _GO_ON.get(decided, decided)})
    answer = await work.desk.ask(
        work.run,
        Question(
            kind=RequestKind.QUESTION,
            reason_code=CONVERSATION,
            title=clean_line(work.handoff.spec.name, limit=80),
            question=text,
            context=f"shown although it breaks a rule: {'; '.join(flagged)}" if flagged else "",
        ),
    )
    turns = [*turns, {"role": "operator", "text": answer.text}][-TURNS_KEPT:]
    state = role.parked(state, work.desk.parked(work.run))
    await work.keep(TURN, {ROLE: _json(state), TURNS: turns})
    return done(
        f"the operator: {clean_line(answer.text, limit=120)}",
        beliefs={ROLE: _json(state), TURNS: turns, REPAIRS: None, AWAY: None},
        said=answer.text,
        flagged=flagged,
    )


_GO_ON = {"go_on": "go on asking", "proceed": "proceed with what is known"}


async def _how_to_go_on(work: Work, state: role.RoleState) -> str:
    """Ten questions and no clear problem: the operator decides (ontology spec §5, larry)."""
    options = (
        Option(id="go_on", label=_GO_ON["go_on"], effect=Effect.RESUME),
        Option(id="proceed", label=_GO_ON["proceed"], effect=Effect.ACCEPT),
        Option(id="stop", label="stop here", effect=Effect.ABORT),
    )
    answer = await work.desk.ask(
        work.run,
        Question(
            kind=RequestKind.DECISION,
            reason_code="role.unclear",
            title="the problem is still not clear",
            question=f"{state.questions} questions were asked and the problem is not ready for analysis.",
            options=options,
        ),
    )
    return answer.option_id or answer.text


async def update_clarity(work: Work) -> ToolResult:
    """Note what is known of the problem; the score is capped, and only the operator confirms."""
    slot = str(work.args["slot"])
    if slot not in SLOTS:
        raise InvalidError("update_clarity", (Problem(path="slot", message=f"is one of {', '.join(SLOTS)}"),))
    score = float(work.args["score"])
    if not 0 <= score <= 1:
        raise InvalidError("update_clarity", (Problem(path="score", message="is a number from 0 to 1"),))
    state = state_of(work)
    confirmed = bool(work.args.get("confirmed")) and _said_yes(work)
    clarity = state.clarity.updated(slot, str(work.args["text"]), score, confirmed)
    after = state.model_copy(update={"clarity": clarity})
    await work.keep(TURN, {ROLE: _json(after)}, f"{slot}: {clarity.score(slot):.2f}")
    ready = "ready" if after.ready else "not ready yet"
    return done(
        f"{slot} is {clarity.score(slot):.2f} clear; the problem is {ready}",
        beliefs={ROLE: _json(after)},
        clarity=clarity.to_dict(),
        ready=after.ready,
    )


async def park(work: Work) -> ToolResult:
    """Put an idea aside; the operator takes it up, or drops it, when they like (ontology spec §1.12)."""
    idea = clean_line(str(work.args["idea"]), limit=IDEA_LIMIT).strip()
    if not idea:
        raise InvalidError("park", (Problem(path="idea", message="needs some words"),))
    name = await work.desk.park(work.run, idea)
    state = role.parked(state_of(work), work.desk.parked(work.run))
    await work.keep(TURN, {ROLE: _json(state)}, f"parked {name}: {clean_line(idea, limit=120)}")
    return done(f"parked as {name}", beliefs={ROLE: _json(state)}, idea=name)


def _said_yes(work: Work) -> bool:
    """Whether the operator's last words are a yes."""
    said = [turn for turn in work.brief.kept(work.beliefs, TURNS) or () if turn["role"] == "operator"]
    return bool(said) and _YES.match(str(said[-1]["text"])) is not None


def state_of(work: Work) -> role.RoleState:
    """Where a role stands; it begins with what was handed over."""
    kept = work.brief.read(work.beliefs, ROLE, role.RoleState)
    ideas = tuple(work.desk.parked(work.run))
    return kept or role.RoleState(clarity=work.handoff.context.problem_clarity, parked=ideas)


def _json(state: role.RoleState) -> dict[str, object]:
    return state.model_dump(mode="json")
