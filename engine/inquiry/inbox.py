"""Everything that needs the operator: a pure function of an agent's state, and the order to take it in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.agent.steering.rules import rule_text, shape, words_of
from engine.core.actions import Reversibility
from engine.core.agents import RunState
from engine.core.approvals import Answer, Question
from engine.core.improvement import CampaignStatus, ItemStatus, JobStatus, MastermindState
from engine.core.reasoner import GenerationStage
from engine.core.state import AgentState
from engine.value import dataclass

if TYPE_CHECKING:
    from engine.crew.ontology.context import HumanRequest


SYSTEM = "Mastermind"
"""Who needs the operator where it is no agent; no agent has such an id."""
QUESTIONS_LOOKED = 20
"""Jobs back to which questions are looked for."""
WORKSPACE = "workspace"
"""Who needs the operator where the workspace's settings do."""


class NeedKind(StrEnum):
    """What an agent needs the operator for, the most urgent first."""

    UNKNOWN = "unknown outcome"
    APPROVAL = "approval"
    TURN = "your turn"
    REQUEST = "request"
    """Asked by an agent that was handed work, or by the crew's manager."""
    SERVER = "server"
    """An MCP server of the workspace waits for leave to start."""
    REPLAN = "re-plan"
    PLANS = "plans"
    HANDOVER = "hand-over"
    QUESTION = "question"
    """A job of Mastermind's asks which of several things is meant, or whether its steps are right."""
    CAMPAIGN = "campaign"
    """A candidate is better and waits to be looked at, or what was applied does worse."""
    BACKLOG = "backlog"
    """A critical item waits for approval."""
    BUDGET = "budget"
    STUCK = "stuck"
    BREAKPOINT = "breakpoint"
    CONTROL = "controls"
    """An operator asks who holds an agent's controls for them."""
    RULE = "rule"
    """A rule that was learned from answers could be taken up; no agent waits for it."""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that waits for the operator."""

    agent: str
    kind: NeedKind
    thing: str
    """What it is about: an action, a goal, a step or a generation."""
    what: str
    """In words, on a line; made of what agents and tools said, so not cleaned."""
    since: str = ""
    """When it began, ISO 8601 UTC; empty where only the event is known."""
    event: str = ""
    group: str = ""
    """The same for questions of one shape, which can be answered together."""
    offered: str = ""
    """Of an approval: the narrowest rule that allows it, on a line."""
    options: tuple[str, ...] = ()
    """Of a request: the answers to choose from, in their order."""
    until: str = ""
    """Of an approval: when it is denied by itself, ISO 8601 UTC; empty where it never is."""
    urgent: bool = False
    """Whether it cannot be undone, or nobody knows what was done."""
    of: str = ""
    """The only operator whom it concerns; empty for any."""

    @property
    def key(self) -> str:
        """Its own among all needs of a workspace."""
        return f"{self.agent} {self.kind} {self.thing}"


def needs_of(state: AgentState) -> tuple[Need, ...]:
    """What an agent needs the operator for."""
    return (*asked_of(state), *_paused(state), *_controls(state)) if not state.deleted else ()


def needs_of_system(state: MastermindState) -> tuple[Need, ...]:
    """What Mastermind needs the operator for."""
    return (*_campaigns(state), *_items(state), *_questions(state))


def need_of_crew(request: HumanRequest) -> Need:
    """What the crew asks of the operator."""
    return Need(
        request.agent_id,
        NeedKind.REQUEST,
        request.id,
        f"{request.title}: {request.question}" if request.question != request.title else request.title,
        request.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        options=tuple(option.label for option in request.options),
        urgent=request.severity >= 3,
    )


def need_of_server(server: str, line: str, since: str) -> Need:
    """An MCP server that may not start before the operator has said so.

    Args:
        server: its name in `mcp.json`.
        line: its command line or address.
        since: when it began to wait.
    """
    return Need(WORKSPACE, NeedKind.SERVER, server, f"{server} of mcp.json would start: {line}", since)


def in_order(needs: Iterable[Need]) -> tuple[Need, ...]:
    """The needs of all agents: what is urgent first, then by kind, then the longest wait."""
    kinds = list(NeedKind)

    def place(need: Need) -> tuple[bool, int, str, str]:
        return not need.urgent, kinds.index(need.kind), need.since or "~", need.agent

    return tuple(sorted(needs, key=place))


def question_text(question: Question) -> str:
    """What is asked, on a line; not cleaned."""
    call = question.call
    about = call.line or ", ".join(call.paths)
    content = call.args.get("content")
    size = f" ({len(content):,} characters)" if isinstance(content, str) else ""
    return f"{call.command} {about}{size}".strip()


def review_text(state: AgentState, question: Question) -> str:
    """What the automatic reviewer said of what is asked; empty where none looked at it. Not cleaned."""
    review = state.approvals.review
    if review is None or (review.action, review.key) != (question.action, question.key):
        return ""
    if review.trouble:
        return f"the reviewer ({review.by}) has no verdict: {review.trouble}"
    against = "denies it" if review.answer is Answer.DENY else "asks you to look"
    opinion = "has nothing against it" if review.answer is Answer.ALLOW else against
    return f"the reviewer ({review.by}) {opinion}" + (f": {review.reason}" if review.reason else "")


def asked_of(state: AgentState) -> Iterator[Need]:
    """What an agent has asked the operator."""
    agent, approvals = state.agent_id, state.approvals
    question = approvals.question
    if question is not None and state.run is not RunState.STOPPED:
        yield Need(
            agent,
            NeedKind.APPROVAL,
            question.action,
            f"{question_text(question)} — {question.why}"
            + (f" (for the client {question.call.client})" if question.call.client else "")
            + (f" — {review}" if (review := review_text(state, question)) else ""),
            question.at,
            question.event,
            group=shape(question.call),
            offered=rule_text(question.offered),
            urgent=question.call.undo is Reversibility.IRREVERSIBLE,
        )
    turn = state.intervention
    if turn is not None and not state.shell_taken:
        step = state.find_step(turn.step)
        unknown = step is not None and step[1].summary.is_a("step.unknown")
        kind = NeedKind.UNKNOWN if unknown else NeedKind.TURN
        yield Need(agent, kind, turn.step or turn.goal, turn.reason, event=turn.event, urgent=unknown)
    for held in approvals.held.values():
        what = f"the plan of {held.goal} is another than accepted: {held.change}"
        yield Need(agent, NeedKind.REPLAN, held.goal, what, held.at, held.told or held.event)
    for made in state.generations.values():
        if made.stage is GenerationStage.HELD:
            what = f"plans for {made.goal} wait for your approval"
            yield Need(agent, NeedKind.PLANS, made.id, what, event=made.event)
    if state.handover is not None:
        what = "say what it is to know of your changes at the shell (settle)"
        yield Need(agent, NeedKind.HANDOVER, state.handover.action, what, event=state.handover.event)


def _controls(state: AgentState) -> Iterator[Need]:
    """Operators who asked the holder for the controls."""
    holder = state.control.holder
    for name, event in state.control.asked:
        what = f"{name} asks {holder} for the controls: control give {name}"
        yield Need(state.agent_id, NeedKind.CONTROL, name, what, event=event, of=holder)


def _paused(state: AgentState) -> Iterator[Need]:
    """An agent that was held by itself, and not by the operator's pause."""
    if state.run is not RunState.PAUSED or state.grants or not state.has_work or state.intervention:
        return
    agent, reason = state.agent_id, state.run_reason
    if reason.is_a("run.budget"):
        yield Need(agent, NeedKind.BUDGET, state.current_goal, reason, event=state.run_event)
    elif reason.is_a("run.stuck") or reason.is_a("run.reviewer"):
        yield Need(agent, NeedKind.STUCK, state.current_goal, reason, event=state.run_event)
    elif reason.is_a("run.breakpoint"):
        yield Need(agent, NeedKind.BREAKPOINT, state.breakpoint_hit, reason, event=state.run_event)


def rules_of(state: AgentState) -> Iterator[Need]:
    """The rules that were learned from answers to an agent, which the operator may take up."""
    for proposal in state.approvals.proposals:
        rule = proposal.learned
        rests = f"{rule.hits} answers alike, about {rule.calls} calls"
        what = f"{rule.rule.answer} {words_of(rule.rule)} — {rests}"
        yield Need(state.agent_id, NeedKind.RULE, proposal.id, what, event=proposal.event)


def _campaigns(state: MastermindState) -> Iterator[Need]:
    for campaign in state.campaigns.values():
        worse = campaign.status is CampaignStatus.APPLIED and bool(campaign.told)
        if campaign.status is CampaignStatus.NEEDS_OPERATOR or worse:
            stage = campaign.stages[-1]
            what = campaign.told if worse else campaign.message
            yield Need(SYSTEM, NeedKind.CAMPAIGN, campaign.id, what, stage.at, stage.event, urgent=worse)


def _items(state: MastermindState) -> Iterator[Need]:
    for item in state.items.values():
        if item.status is ItemStatus.PENDING_APPROVAL:
            what = f"{item.id} on {item.target}: {item.suggestion}"
            yield Need(SYSTEM, NeedKind.BACKLOG, item.id, what, item.changed)


def _questions(state: MastermindState) -> Iterator[Need]:
    """The newest jobs that ended with a question which no later job answered by asking the same again."""
    asked: set[tuple[str, str]] = set()
    for job in list(reversed(state.jobs.values()))[:QUESTIONS_LOOKED]:
        mine = (job.verb, job.argument)
        asks = job.answer.get("choices") or job.answer.get("approve")
        if asks and job.status is JobStatus.NEEDS_OPERATOR and mine not in asked:
            what = f"{job.verb} {job.argument}: {job.message.partition(chr(10))[0]}"
            yield Need(SYSTEM, NeedKind.QUESTION, job.id, what, job.ended, job.event)
        asked.add(mine)
