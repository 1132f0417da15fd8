"""An answer comes piece by piece and is whole in the end, whatever it is made of."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from engine.models.endpoint import create_arguments
from engine.models.messages import (
    Message,
    ModelAnswer,
    StopReason,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    user_message,
)
from engine.models.request import ModelRequest, ToolSpec
from tests.engine.models.model_talk import CLAUDE, question, talking
from tests.messages_server import MessagesServer, Reply, call

TOP = Path(__file__).parents[3]


async def test_text_and_thinking_come_in_pieces_and_are_whole_in_the_end() -> None:
    reply = Reply(text="Create the directory first.", thinking="A directory is needed.", pings=True)
    async with MessagesServer([reply]) as server, talking(server) as talk:
        answer = await talk.send()
    assert answer.text == talk.shown("text") == "Create the directory first."
    assert talk.shown("thinking") == "A directory is needed."
    assert len(talk.pieces) > 4
    assert answer.content[0] == Thinking("A directory is needed.", "c2lnbmVk")
    assert (answer.stop_reason, answer.partial, answer.request_id) == (StopReason.END_TURN, False, "req_1")
    assert answer.first_piece_ms is not None
    assert 0 <= answer.first_piece_ms <= answer.latency_ms


async def test_a_watcher_sees_pieces_while_the_answer_is_still_under_way() -> None:
    reply = Reply(text="one two three four", after=4, then="hold")
    async with MessagesServer([reply]) as server, talking(server) as talk:
        sending = asyncio.create_task(talk.send())
        await talk.watched.wait()
        assert not sending.done()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending


async def test_a_tool_call_is_read_strictly_and_its_name_is_shown_first() -> None:
    reply = call("write", {"path": "a.txt", "text": "ü"})
    async with MessagesServer([reply]) as server, talking(server) as talk:
        answer = await talk.send()
    assert answer.tool_uses == (ToolUse("toolu_1", "write", {"path": "a.txt", "text": "ü"}),)
    assert answer.stop_reason is StopReason.TOOL_USE
    assert talk.pieces[0].kind == "tool"
    assert json.loads(talk.shown("tool_input")) == {"path": "a.txt", "text": "ü"}


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ('{"command": "run", "command": "ls"}', "the key 'command' appears twice"),
        ('{"n": NaN}', "NaN is no JSON value"),
        ('{"n": 1e999}', "too large"),
        ('{"a": [1, 2', "line 1 column"),
        ("[1, 2]", "the input is no JSON object"),
    ],
)
async def test_a_tool_input_that_cannot_be_used_says_why_and_keeps_what_was_said(
    given: str, fault: str
) -> None:
    async with MessagesServer([call("write", given)]) as server, talking(server) as talk:
        (use,) = (await talk.send()).tool_uses
    assert fault in use.fault
    assert (use.input, use.raw) == ({}, given)


@pytest.mark.parametrize("reason", [reason.value for reason in StopReason if reason != "unknown"])
async def test_each_reason_to_stop_is_known_by_its_name(reason: str) -> None:
    async with MessagesServer([Reply(text="x", stop_reason=reason)]) as server, talking(server) as talk:
        answer = await talk.send()
    assert answer.stop_reason == reason
    assert not answer.partial


async def test_a_reason_to_stop_that_is_not_known_is_kept_in_its_own_word() -> None:
    async with MessagesServer([Reply(text="x", stop_reason="tea_time")]) as server, talking(server) as talk:
        answer = await talk.send()
    assert (answer.stop_reason, answer.stop_said) == (StopReason.UNKNOWN, "tea_time")


async def test_usage_tells_what_came_from_the_cache_and_what_went_into_it() -> None:
    usage = {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_read_input_tokens": 1_000,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100},
    }
    async with MessagesServer([Reply(text="x", usage=usage)]) as server, talking(server) as talk:
        used = (await talk.send()).usage
    assert (used.cache_read_tokens, used.cache_write_tokens, used.cache_write_1h_tokens) == (1_000, 200, 100)
    assert (used.prompt_tokens, used.total_tokens, used.estimated) == (1_305, 1_312, False)


async def test_usage_that_the_endpoint_does_not_tell_is_estimated_and_says_so() -> None:
    async with MessagesServer([Reply(text="x" * 400, counted=False)]) as server, talking(server) as talk:
        used = (await talk.send()).usage
    assert used.estimated
    assert used.output_tokens == 100
    assert used.input_tokens > 0


async def test_events_without_names_are_read_by_their_type() -> None:
    async with MessagesServer([Reply(text="hello", named=False)]) as server, talking(server) as talk:
        assert (await talk.send()).text == "hello"


async def test_the_request_on_record_is_the_request_that_was_sent() -> None:
    request = ModelRequest(
        CLAUDE,
        (
            user_message("first", cache=True),
            Message("assistant", (Thinking("t", "s"), ToolUse("u1", "look", {"at": 1}))),
            Message("user", (ToolResult("u1", "gone", is_error=True),)),
        ),
        (Text("You plan.", "role", cache=True),),
        (ToolSpec("look", "look at it", {"type": "object"}),),
        cache_tools=True,
        max_tokens=99,
        temperature=0.0,
    )
    async with MessagesServer([Reply(text="x")]) as server, talking(server, key="sk-secret") as talk:
        await talk.send(request)
    ((recorded, _),) = talk.records
    sent = server.requests[0].body
    assert sent.pop("stream") is True
    assert recorded.body() == sent == request.body()
    assert sent["system"][0]["cache_control"] == sent["tools"][0]["cache_control"] == {"type": "ephemeral"}
    assert sent["temperature"] == 0.0
    assert "sk-secret" not in str(recorded.body())
    assert (
        TypeAdapter(ModelRequest).validate_json(TypeAdapter(ModelRequest).dump_json(recorded)) == recorded
    )  # so that a record can be read back


async def test_an_answer_can_be_written_down_and_read_back() -> None:
    reply = call("write", {"a": [1, None]}, text="so", thinking="hm")
    async with MessagesServer([reply]) as server, talking(server) as talk:
        answer = await talk.send()
    form = TypeAdapter(ModelAnswer)
    assert form.validate_json(form.dump_json(answer)) == answer


async def test_what_a_model_refuses_is_left_out_and_noted() -> None:
    request = question("claude-opus-5-5", temperature=0.2, max_tokens=500_000, thinking_budget=2_000)
    async with MessagesServer([Reply(text="x")]) as server, talking(server) as talk:
        answer = await talk.send(request)
    sent = server.requests[0].body
    assert "temperature" not in sent
    assert sent["max_tokens"] == 128_000
    assert sent["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert len(answer.notes) == 3
    assert any("temperature was left out" in note for note in answer.notes)


async def test_a_budget_of_thinking_goes_to_a_model_that_takes_one() -> None:
    request = question("claude-haiku-4-5-20251001", thinking_budget=2_000, temperature=0.0)
    async with MessagesServer([Reply(text="x")]) as server, talking(server) as talk:
        answer = await talk.send(request)
    sent = server.requests[0].body
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2_000}
    assert "temperature" not in sent
    assert answer.notes == ("temperature was left out: it cannot be combined with thinking",)


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-haiku-4-5", "qwen3:4b"])
async def test_effort_goes_to_a_model_that_takes_it_and_is_left_out_visibly_for_others(model: str) -> None:
    script = [Reply(text="x")]
    async with MessagesServer(script) as server, talking(server) as talk:
        answer = await talk.send(question(model, effort="low"))
    sent = server.requests[0].body
    (recorded, _) = talk.records[0]
    assert recorded.body() == {name: value for name, value in sent.items() if name != "stream"}
    if model == "claude-opus-5-5":
        assert sent["output_config"] == {"effort": "low"}
        assert answer.notes == ()
    else:
        assert "output_config" not in sent
        assert any(note.startswith("effort was left out") for note in answer.notes)


def test_a_request_that_says_nothing_of_effort_is_the_one_that_was_recorded_before_there_was_any() -> None:
    plain = question(temperature=0.0)
    assert plain.digest == "20daa1efe72c39a30bb0229998d1458c21dd327a6771e340833e8cd698e8effa"
    assert question(temperature=0.0, effort="low").digest != plain.digest


async def test_several_calls_may_be_under_way_at_once() -> None:
    async with MessagesServer([Reply(text="a"), Reply(text="b")]) as server, talking(server) as talk:
        answers = await asyncio.gather(talk.send(), talk.send())
    assert {answer.text for answer in answers} == {"a", "b"}


async def test_text_that_no_wire_can_hold_becomes_a_question_mark() -> None:
    async with MessagesServer([Reply(text="x")]) as server, talking(server) as talk:
        await talk.send(ModelRequest(CLAUDE, (user_message("a\ud800b"),)))
    assert server.requests[0].body["messages"][0]["content"][0]["text"] == "a?b"


def test_the_sdk_is_not_imported_before_a_model_is_asked() -> None:
    code = "import sys, engine.api.engine, engine.planning.thinkers; print('anthropic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TOP)
    assert done.stdout.strip() == "False"


def test_all_that_is_passed_to_the_sdk_is_in_its_signatures() -> None:
    from anthropic.resources.messages import AsyncMessages

    request = question(
        tools=(ToolSpec("t", "d"),),
        tool_choice="t",
        system=(Text("s"),),
        temperature=0.0,
        thinking_adaptive=True,
        effort="high",
    )
    create = inspect.signature(AsyncMessages.create).parameters
    assert set(create_arguments(request)) | {"stream"} <= set(create)
    assert "temperature" not in create


@pytest.mark.parametrize(
    ("wrong", "said_of_it"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"temperature": 1.5}, "temperature is 1.5"),
        ({"thinking_budget": 100}, "thinking_budget"),
        ({"thinking_budget": 5_000}, "thinking_budget"),
        ({"effort": "much"}, "effort is 'much'"),
        ({"tool_choice": "x"}, "none of the tools"),
        ({"tools": (ToolSpec("a b", "d"),)}, "tools need different names"),
        ({"model": ""}, "model's name"),
        ({"system": tuple(Text("x", cache=True) for _ in range(5))}, "marked for caching"),
    ],
)
def test_a_request_outside_its_ranges_is_refused_with_the_reason(
    wrong: dict[str, object], said_of_it: str
) -> None:
    with pytest.raises(ValueError, match=said_of_it):
        ModelRequest(**{"model": CLAUDE, "messages": (user_message("x"),), **wrong})  # type: ignore[arg-type]
