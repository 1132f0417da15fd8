"""Marking a result as wrong, and taking back what depends on it alone, for command line and cockpit."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from app.commands.command import Answer, CommandHost, GrammarError, Values, answer_message
from app.commands.why import Direction, WhyAnswer, find_why, plain_line, standing_json
from engine.core import commands as cmd
from engine.core.text import clean_line
from engine.inquiry.record import Record, UnknownSubjectError
from engine.inquiry.relations import body_of
from engine.inquiry.why import Dependent, unsupported_beliefs

Submit = Callable[[cmd.Command], Awaitable[cmd.Receipt]]
"""Sends a command as its operator."""


_RESULTS = re.compile(
    r"(action\.(finished|outcome_unknown|cancelled)|belief\.(added|outweighed)|world\.perceived|thought\.recorded"
    r"|(decision|plan)\.\w+|model\.(called|said)|(step|job|goal|meta)\.ended|command\.received|failure\.recorded"
    r"|shell\.changes_settled|reasoner\.(advanced|belief_told|message_heard)|crew\.handoff_ended"
    r"|generation\.(answered|settled)|memory\.(stored|thought_added|reflected|consolidated))\Z"
)
"""Kinds of events that hold what was found, thought, decided or told."""


def disputed_event(record: Record, what: str, agent: str = "") -> str:
    """The event that is meant when something is called wrong: of an action its end, of a file its last write.

    Raises:
        UnknownSubjectError: nothing is called so, or it is no result.
    """
    ref = record.subject(what, agent).newest
    event = record.event(ref)
    if event is not None and _RESULTS.match(event.kind) is None and ref not in record.disputes:
        say = "name an action, a belief, a step, a goal, a file or an event that holds a result"
        raise UnknownSubjectError(f"{ref} ({event.kind}) is no result that could be wrong: {say}")
    return ref


async def dispute(submit: Submit, ref: str, reason: str = "", *, lifted: bool = False) -> cmd.Receipt:
    """Mark an event as wrong, or take that back."""
    stream = ref.rpartition(":")[0]
    return await submit(cmd.Dispute(agent=stream, event=ref, reason=reason, lifted=lifted))


async def retract(submit: Submit, beliefs: Sequence[Dependent]) -> list[cmd.Receipt]:
    """Take beliefs back, one command each."""
    return [await submit(cmd.Forget(agent=belief.agent, key=belief.name)) for belief in beliefs]


async def dispute_answer(host: CommandHost, values: Values) -> Answer:
    """`wrong EVENT [REASON]` and `right EVENT`: the receipt, and what depends on it."""
    engine, agent, lifted = host.engine, host.context.agent, values["lifted"]
    ref = _event_of(await engine.record(), values["subject"], agent)
    receipt = await dispute(_submit_as(host), ref, values["reason"], lifted=lifted)
    if not receipt.ok:
        return answer_message(False, receipt.message)
    why = find_why(await engine.record(), ref, Direction.WRONG, agent)
    answer = {
        "ok": True,
        "changed": receipt.data.get("changed", True),
        "message": receipt.message,
        "event": receipt.event,
        "marked": ref,
        "standing": standing_json(why),
        "actions": actions_in(why),
        "alone": [belief.name for belief in why.alone],
    }
    lines = [receipt.message, *(plain_line(line) for line in why.lines), *why.notes]
    return 0, answer, "\n".join(lines if not lifted else lines[:1])


async def retract_answer(host: CommandHost, values: Values) -> Answer:
    """`retract EVENT [yes]`: the beliefs that nothing else speaks for; with `yes` they are taken back."""
    record = await host.engine.record()
    ref = _event_of(record, values["subject"], host.context.agent)
    alone = unsupported_beliefs(record, [ref])
    names = [belief.name for belief in alone]
    if not values["yes"] or not alone:
        lines = retractable_lines(ref, alone) or [NONE.format(ref=ref)]
        return 0, {"marked": ref, "alone": names}, "\n".join(lines)
    receipts = await retract(_submit_as(host), alone)
    good, messages = all(receipt.ok for receipt in receipts), [receipt.message for receipt in receipts]
    return int(not good), {"ok": good, "retracted": names, "messages": messages}, "\n".join(messages)


def _event_of(record: Record, what: str, agent: str) -> str:
    try:
        return disputed_event(record, what, agent)
    except UnknownSubjectError as error:
        raise GrammarError(str(error)) from None


def _submit_as(host: CommandHost) -> Submit:
    return partial(host.engine.submit, operator=host.operator)


NONE = "no belief depends on {ref} alone"


def retractable_lines(ref: str, alone: Sequence[Dependent]) -> list[str]:
    """What is said of beliefs that could be taken back; nothing where there is none."""
    if not alone:
        return []
    names = ", ".join(clean_line(each.name, limit=80) for each in alone)
    return [f"nothing but {ref} speaks for: {names} (retract {ref} yes)"]


def actions_in(why: WhyAnswer) -> list[str]:
    """The actions of a chain, each once."""
    events = [link.event for link in why.chain.links[1:] if link.event is not None]
    named = (str(body_of(event).get("action", "")) for event in events if event.kind.startswith("action."))
    return list(dict.fromkeys(filter(None, named)))
