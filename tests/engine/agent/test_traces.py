"""Odd streams of the Messages API, byte by byte as endpoints have sent them: with each the goal ends well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from engine_flight import live_state_is_the_fold
from model_flight import model_flight, planned

from engine.core import commands as cmd
from engine.core.goals import GoalStatus
from engine.models.endpoint import Retries
from tests.messages_server import Reply, Seen, object_call, plan_call
from tests.patience import PATIENCE_S
from tests.rounds import FULL

MADE = {"path": "made"}
PLAN = {"plan": [planned("mkdir", **MADE)], "uncovered": []}
CALLS = {"plan": ("propose_plan", PLAN), "decide": ("simple_coder__mkdir", MADE)}
"""By style the call that does what the goal asks."""

Event = dict[str, Any]


def begin(**usage: Any) -> Event:
    message = {"id": "msg_01", "type": "message", "role": "assistant", "model": "m", "content": []}
    stop = {"stop_reason": None, "stop_sequence": None}
    return {"type": "message_start", "message": {**message, **stop, "usage": {"input_tokens": 9, **usage}}}


def end(reason: str | None = "tool_use", **more: Any) -> list[Event]:
    delta = {"stop_reason": reason, "stop_sequence": None, **more}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


def block(index: int, content: Event, *deltas: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, said: str) -> list[Event]:
    return block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": said})


def thought(index: int, said: str) -> list[Event]:
    deltas = {"type": "thinking_delta", "thinking": said}, {"type": "signature_delta", "signature": "c2ln"}
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def tool(index: int, name: str, given: str, ident: str = "toolu_01") -> list[Event]:
    deltas = [
        {"type": "input_json_delta", "partial_json": given[at : at + 9]} for at in range(0, len(given), 9)
    ]
    return block(index, {"type": "tool_use", "id": ident, "name": name, "input": {}}, *deltas)


def raw(*events: Event, between: str = "", ends: str = "\n") -> str:
    """The events as they go over the wire."""
    lines = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n{between}" for each in events)
    return "".join(lines).replace("\n", ends)


@dataclass(frozen=True)
class Trace:
    """A stream, and whether the call in it counts, so that nothing more is asked for it."""

    body: str
    counts: bool = False
    ends: GoalStatus = GoalStatus.ACHIEVED


def traces(style: str) -> Iterator[tuple[str, Trace]]:
    name, given = CALLS[style]
    whole = json.dumps(given)
    good = tool(0, name, whole)
    ping = {"type": "ping"}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    details = {"stop_details": {"type": "refusal", "category": "cyber", "explanation": "no"}}
    yield "empty content", Trace(raw(begin(), *end("end_turn")))
    yield "an empty text", Trace(raw(begin(), *block(0, {"type": "text", "text": ""}), *end("end_turn")))
    yield "blanks alone", Trace(raw(begin(), *text(0, " \n\n "), *end("end_turn")))
    yield "pause_turn", Trace(raw(begin(), *text(0, "I look."), *block(1, server), *end("pause_turn")))
    yield "refusal", Trace(raw(begin(), *end("refusal", **details)), ends=GoalStatus.FAILED)
    yield (
        "refusal in a call",
        Trace(raw(begin(), *tool(0, name, whole[:20]), *end("refusal")), ends=GoalStatus.FAILED),
    )
    yield "max_tokens in a call", Trace(raw(begin(), *tool(0, name, whole[:-4]), *end("max_tokens")))
    yield "max_tokens in a thought", Trace(raw(begin(), *thought(0, "First"), *end("max_tokens")))
    yield "no room", Trace(raw(begin(), *text(0, "So"), *end("model_context_window_exceeded")))
    yield "no reason to stop", Trace(raw(begin(), *text(0, "So"), *end(None)))
    yield "no input", Trace(raw(begin(), *tool(0, name, ""), *end()))
    yield "no call", Trace(raw(begin(), *text(0, "Done, all is made!"), *end("end_turn")))
    yield "no such tool", Trace(raw(begin(), *tool(0, "conjure", "{}"), *end()))
    yield "overloaded in mid-stream", Trace(raw(begin(), *good[:3], error))
    yield "cut off in mid-stream", Trace(raw(begin(), *good[:3]))
    yield "garbage in mid-stream", Trace(raw(begin(), *good[:3]) + "event: x\ndata: {\n\n")
    yield "nothing at all", Trace("")
    thoughtful = *thought(0, "a"), *text(1, "I make it."), *thought(2, "b"), *tool(3, name, whole)
    yield "interleaved thinking", Trace(raw(begin(), *thoughtful, *end()), counts=True)
    hidden = block(0, {"type": "redacted_thinking", "data": "c2VjcmV0"})
    yield "a hidden thought", Trace(raw(begin(), *hidden, *tool(1, name, whole), *end()), counts=True)
    pings = [each for event in (begin(), *good, *end()) for each in (ping, event, ping)]
    yield "pings", Trace(raw(*pings), counts=True)
    new = [{"type": "message_annotation", "note": "x"}, begin(), {"type": "budget_left", "tokens": 1}]
    yield "unknown events", Trace(raw(*new, *good, *end()), counts=True)
    odd = {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "calm"}}
    yield "an unknown delta", Trace(raw(begin(), *good[:-1], odd, good[-1], *end()), counts=True)
    foreign = *block(0, server), *block(1, found), *tool(2, name, whole)
    yield "unknown blocks", Trace(raw(begin(), *foreign, *end()), counts=True)
    yield "comments between", Trace(raw(begin(), *good, *end(), between=": keep-alive\n\n"), counts=True)
    yield "other line ends", Trace(raw(begin(), *good, *end(), ends="\r\n"), counts=True)
    more = tool(1, name, whole, "toolu_02")
    yield "parallel calls", Trace(raw(begin(), *good, *more, *end()), counts=style == "decide")
    unused = begin(cache_creation_input_tokens=None, cache_read_input_tokens=None, service_tier="x")
    yield "usage without numbers", Trace(raw(unused, *good, *end()), counts=True)


OFTEN = ("refusal", "max_tokens in a call", "pause_turn", "parallel calls", "interleaved thinking")
"""Those that the suite also tries with decisions; `make endurance` tries all."""
TRACES = [
    (style, *each) for style in CALLS for each in traces(style) if FULL or style == "plan" or each[0] in OFTEN
]


@pytest.mark.parametrize(
    ("style", "name", "trace"), TRACES, ids=[f"{style}: {name}" for style, name, _ in TRACES]
)
async def test_after_an_odd_stream_the_goal_ends_well(
    tmp_path: Path, style: str, name: str, trace: Trace
) -> None:
    def goes_on(_: Seen) -> Reply:
        """What a model says that has recovered."""
        if style == "plan":
            return plan_call(*PLAN["plan"])
        if (flight.sandbox / "made").exists():
            return object_call("finish", summary="it is there")
        return object_call("simple_coder__mkdir", **MADE)

    odd = Reply(body=trace.body, headers={"content-type": "text/event-stream"})
    steps = Retries(attempts=2)
    async with model_flight(tmp_path / "ws", odd, *[goes_on] * 5, retries=steps) as (flight, server):
        await flight.do(cmd.CreateAgent, config={"style": style})
        await flight.do(cmd.AdoptGoal, text="make the directory made")
        await flight.do(cmd.Run, ask=False)
        state = await flight.until(lambda state: state.goals["g1"].status.terminal, patience_s=PATIENCE_S)
        assert state.goals["g1"].status is trace.ends, state.goals["g1"].reason
        assert (flight.sandbox / "made").is_dir() is (trace.ends is GoalStatus.ACHIEVED)
        assert not flight.engine.fault(flight.agent)
        usual = 1 if style == "plan" else 2
        if trace.ends is GoalStatus.ACHIEVED:
            assert (len(server.requests) == usual) is trace.counts
        else:
            assert "declined to answer" in state.goals["g1"].reason
            assert len(server.requests) == 1, "what is refused is not asked again"
        await live_state_is_the_fold(flight, flight.agent)
