"""What a run asks of the crew, command by command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from engine.agents.values import InvalidError
from engine.crew.parts import Desk, HandoffError
from engine.crew.tool import debating, handing, reading, returning, stepping, talking
from engine.crew.tool.work import Work, refused, told
from engine.domain.action import ToolResult
from engine.domain.ports import CallContext

_HANDLERS: dict[str, Callable[[Work], Awaitable[ToolResult]]] = {
    "delegate": handing.delegate,
    "gather": handing.gather,
    "transfer_to": handing.transfer_to,
    "debate": debating.debate,
    "return_result": returning.return_result,
    "compute": returning.compute,
    "escalate": talking.escalate,
    "reply": talking.reply,
    "update_clarity": talking.update_clarity,
    "park": talking.park,
    "checkpoint": stepping.checkpoint,
    "ask": stepping.ask,
    "read_skill": reading.read_skill,
}


async def carry_out(desk: Desk, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
    """Do what a run asks; what it cannot be is answered, never raised."""
    handoff = desk.handoff_of(context.agent)
    if handoff is None:
        return refused(f"{context.agent or 'nobody'} works on no handoff, so it cannot {command}")
    try:
        return await _HANDLERS[command](Work(desk, context.agent, handoff, command, args, context))
    except HandoffError as error:
        return told(error)
    except InvalidError as error:
        return refused(str(error))
