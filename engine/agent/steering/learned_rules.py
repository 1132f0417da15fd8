"""Rules learned from approvals: what the operator has answered alike each time, as the narrowest rule for it.

A rule is proposed for so many equal answers that it would have given, and only where it would have given none
otherwise. What cannot be undone is never to be allowed by a learned rule. Nothing here decides anything: the
operator takes a rule up, or declines it. Only answers count that this user gave here: a journal that came
from elsewhere teaches nothing.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from engine.agent.steering.envelopes import call_of, key_of
from engine.agent.steering.rules import literal, narrowest_rule, rule_line, rule_matches, shape
from engine.core import events as ev
from engine.core.actions import Reversibility
from engine.core.approvals import OUTSIDE, Answer, Call, LearnedRule, Rule
from engine.core.fold import apply, handled
from engine.core.journal import Event
from engine.core.offload import in_thread
from engine.core.ports import CommandSpec
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.core.trust import FolderTrust
from engine.value import dataclass, field

PAGE = 1_000
"""Events folded at a time."""
EVIDENCE_TOLD = 5
LEARNED_AT_ONCE = 20
"""Rules that are proposed at a time, those with most evidence first."""
LOOKED_AT = 200
"""The newest answers of one kind in which rules are looked for; all count for and against them."""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call that was asked about, and the operator's answer."""

    call: Call
    answer: Answer
    event: str
    own: bool = True
    """Whether a rule may be learned from it; otherwise it only speaks against one."""


@dataclass(slots=True)
class ApprovalHistory:
    """What an agent's whole history says of its calls; takes its events in their order."""

    spec_of: Callable[[str, str], CommandSpec | None]
    trust: FolderTrust | None = None
    answers: list[AnsweredCall] = field(default_factory=list)
    calls: dict[str, tuple[Call, int]] = field(default_factory=dict)
    """Each different call that began, with how often."""
    _state: AgentState = field(default_factory=AgentState)
    _asked: dict[str, Call] = field(default_factory=dict)

    def take(self, events: Iterable[Event]) -> None:
        """Bring it forward; blocking."""
        for event in events:
            if not handled(event.kind):
                continue
            payload = ev.payload_of(event)
            apply(self._state, event, payload)
            if isinstance(payload, ev.ApprovalAsked):
                self._asked[payload.action] = payload.call
            elif isinstance(payload, ev.ApprovalAnswered):
                self._answered(event, payload)
            elif isinstance(payload, ev.ActionStarted):
                self._began()

    def _answered(self, event: Event, payload: ev.ApprovalAnswered) -> None:
        call = self._asked.pop(payload.action, None)
        if call is None or not event.actor.startswith("operator:"):
            return
        answer = Answer.ALLOW if payload.allowed else Answer.DENY
        own = self.trust is None or self.trust.sealed(event)
        # A word on one very call, or on what a client asked, says nothing of the agent's own calls.
        own = own and not call.request and not call.client
        if answer is Answer.ALLOW:
            own = own and call.undo is not Reversibility.IRREVERSIBLE and not call.hosts
        self.answers.append(AnsweredCall(call, answer, event.ref, own))

    def _began(self) -> None:
        action = self._state.action
        spec = self.spec_of(action.tool, action.command) if action is not None else None
        if spec is not None and (call := call_of(self._state, spec)) is not None:
            _, before = self.calls.get(key_of(call), (call, 0))
            self.calls[key_of(call)] = call, before + 1

    def learn(self, needed: int, held: Sequence[Rule] = ()) -> tuple[LearnedRule, ...]:
        """The narrowest rules that this many equal answers speak for and none speaks against.

        Args:
            needed: how many.
            held: rules that hold already; what they answer needs no other.
        """
        groups: dict[tuple[Answer, str], list[AnsweredCall]] = {}
        for answered in self.answers:
            alike = (rule for rule in held if rule.answer is answered.answer)
            if answered.own and not any(rule_matches(rule, answered.call) for rule in alike):
                groups.setdefault((answered.answer, shape(answered.call)), []).append(answered)
        learned = [rule for group in groups.values() for rule in self._of_group(group, needed)]
        return tuple(sorted(learned, key=lambda rule: -rule.hits)[:LEARNED_AT_ONCE])

    def _of_group(self, group: list[AnsweredCall], needed: int) -> Iterator[LearnedRule]:
        """The rules of calls of one kind that were answered alike, the narrowest that do first."""
        left, taken = list(group[-LOOKED_AT:]), list[Rule]()
        rules = {each.event: _widened(each) for each in left}
        for width in range(max(map(len, rules.values()))):
            same = [rules[each.event] for each in left]
            for rule in {rule_line(each[width]): each[width] for each in same if width < len(each)}.values():
                hits = {each.event for each in left if rule_matches(rule, each.call)}
                others = (each for each in self.answers if each.answer is not rule.answer)
                if len(hits) >= needed and not any(rule_matches(rule, each.call) for each in others):
                    left = [each for each in left if each.event not in hits]
                    taken.append(rule)
        for rule in taken:
            given = [each.event for each in group if rule_matches(rule, each.call)]
            calls = sum(count for call, count in self.calls.values() if rule_matches(rule, call))
            yield LearnedRule(rule, len(given), len(group) - len(given), calls, tuple(given[-EVIDENCE_TOLD:]))


def _widened(answered: AnsweredCall) -> list[Rule]:
    """Rules that give a call its answer, the narrowest first."""
    call, exact = answered.call, narrowest_rule(answered.call)
    rules = [exact]
    inside = not any(path.startswith(f"{OUTSIDE}:") for path in call.paths)
    if call.line:
        rules += [replace(exact, args={"command": pattern}) for pattern in _lines(call.line)]
    elif call.paths and inside:
        paths = [list(_globs(path)) for path in call.paths]
        for width in range(max(map(len, paths))):
            globs = (each[min(width, len(each) - 1)] for each in paths)
            rules.append(replace(exact, paths=tuple(dict.fromkeys(globs))))
    if answered.answer is Answer.ALLOW:
        return [replace(rule, reversible=True, network=False) for rule in rules]
    return [replace(rule, answer=Answer.DENY) for rule in rules]


def _lines(line: str) -> Iterator[str]:
    """Patterns of a program's line: ever fewer of its first words."""
    words = line.split(" ")
    for count in range(len(words) - 1, 0, -1):
        yield f"{literal(' '.join(words[:count]))} *"


def _globs(path: str) -> Iterator[str]:
    """Patterns of a path: files like it beside it, all beside it, and all below ever higher directories."""
    directory, name = posixpath.split(path)
    within = f"{literal(directory)}/" if directory else ""
    if (ending := posixpath.splitext(name)[1]) and ending != name:
        yield f"{within}*{literal(ending)}"
    if not directory:
        return  # all that there is would be no narrow rule
    yield f"{within}*"
    while directory:
        yield f"{literal(directory)}/**"
        directory = posixpath.dirname(directory)


async def learn_rules(
    store: JournalStore,
    state: AgentState,
    spec_of: Callable[[str, str], CommandSpec | None],
    trust: FolderTrust | None,
    needed: int,
) -> tuple[LearnedRule, ...]:
    """What an agent's durable events teach; folded off the loop.

    Raises:
        JournalError: the events cannot be read.
    """
    history = ApprovalHistory(spec_of, trust)
    head = (await store.head(state.agent_id)).version
    for first in range(1, head + 1, PAGE):
        page = await store.read(state.agent_id, first, min(first + PAGE - 1, head))
        await in_thread(history.take, page)
    held = [grant.rule for grant in state.approvals.grants]
    return await in_thread(history.learn, needed, held)
