"""Marking a result as wrong, and taking back what stands on it alone, for command line and cockpit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from app.inquiring import Answer, Found, Way, find, plain
from engine import inquiry
from engine.domain import commands as cmd
from engine.domain.text import clean_line
from engine.inquiry import Record, Standing

Submit = Callable[[cmd.Command], Awaitable[cmd.Receipt]]
"""Sends a command as its operator."""


def marked(record: Record, what: str, agent: str = "") -> str:
    """The event that is meant when something is called wrong: of an action its end, of a file its last write.

    Raises:
        UnknownSubjectError: nothing is called so.
    """
    return record.subject(what, agent).newest


async def dispute(submit: Submit, ref: str, reason: str = "", *, lifted: bool = False) -> cmd.Receipt:
    """Mark an event as wrong, or take that back."""
    stream = ref.rpartition(":")[0]
    return await submit(cmd.Dispute(agent=stream, event=ref, reason=reason, lifted=lifted))


async def retract(submit: Submit, beliefs: Sequence[Standing]) -> list[cmd.Receipt]:
    """Take beliefs back, one command each."""
    return [await submit(cmd.Forget(agent=one.agent, key=one.name)) for one in beliefs]


async def dispute_answer(
    read: Callable[[], Awaitable[Record]], submit: Submit, argument: str, agent: str, *, lifted: bool = False
) -> Answer:
    """`wrong EVENT [REASON]` and `right EVENT`: the receipt, and what stands on it."""
    what, _, reason = argument.partition(" ")
    try:
        ref = marked(await read(), what, agent)
    except inquiry.UnknownSubjectError as error:
        return 2, {}, str(error)
    receipt = await dispute(submit, ref, reason.strip(), lifted=lifted)
    if not receipt.ok:
        return 1, {"ok": False, "message": receipt.message}, receipt.message
    record = await read()
    found = find(record, ref, Way.WRONG, agent)
    answer = {
        "ok": True,
        "message": receipt.message,
        "event": receipt.event,
        "marked": ref,
        "standing": [
            {"kind": one.kind, "name": one.name, "agent": one.agent, "ref": one.ref} for one in found.standing
        ],
        "actions": actions_in(found),
        "alone": [one.name for one in found.alone],
    }
    lines = [receipt.message, *(plain(line) for line in found.lines), *found.notes]
    return 0, answer, "\n".join(lines if not lifted else lines[:1])


async def retract_answer(
    read: Callable[[], Awaitable[Record]], submit: Submit, argument: str, agent: str
) -> Answer:
    """`retract EVENT [yes]`: the beliefs that nothing else speaks for; with `yes` they are taken back."""
    what, _, yes = argument.partition(" ")
    if yes not in ("", "yes"):
        return (
            2,
            {},
            f"only 'yes' may follow, which takes the beliefs back; not '{clean_line(yes, limit=40)}'",
        )
    try:
        record = await read()
        ref = marked(record, what, agent)
    except inquiry.UnknownSubjectError as error:
        return 2, {}, str(error)
    alone = inquiry.standing_alone(record, [ref])
    names = [one.name for one in alone]
    if not yes or not alone:
        return (
            0,
            {"marked": ref, "alone": names},
            "\n".join(alone_lines(ref, alone) or [NONE.format(ref=ref)]),
        )
    receipts = await retract(submit, alone)
    good = all(receipt.ok for receipt in receipts)
    told = [receipt.message for receipt in receipts]
    return (0 if good else 1), {"ok": good, "retracted": names, "messages": told}, "\n".join(told)


NONE = "no belief stands on {ref} alone"


def alone_lines(ref: str, alone: Sequence[Standing]) -> list[str]:
    """What is said of beliefs that could be taken back; nothing where there is none."""
    if not alone:
        return []
    names = ", ".join(clean_line(one.name, limit=80) for one in alone)
    return [f"nothing but {ref} speaks for: {names} (retract {ref} yes)"]


def actions_in(found: Found) -> list[str]:
    """The actions of a chain, each once."""
    from engine.inquiry.naming import body_of

    events = [link.event for link in found.chain.links[1:] if link.event is not None]
    named = (str(body_of(event).get("action", "")) for event in events if event.kind.startswith("action."))
    return list(dict.fromkeys(filter(None, named)))
