"""A structured answer is of the form that was asked for, or its faults go back and are put right."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from engine.models.completion import ask, complete
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.lenient import values_in
from engine.models.messages import StopReason
from engine.models.structured import NotOfFormError, Structured, ask_for
from tests.engine.models.model_talk import CLAUDE, Talk, question, talking
from tests.messages_server import MessagesServer, Reply, call, object_call

LOCAL = "qwen3:4b"
"""A model that is not known to have tools."""


class Mood(StrEnum):
    GOOD = "good"
    BAD = "bad"


class Weather(BaseModel):
    """Say what the weather is."""

    model_config = ConfigDict(extra="forbid")
    degrees: int = Field(ge=-90, le=60)
    mood: Mood = Mood.GOOD
    winds: tuple[str, ...] = ()


def too_warm(weather: Weather) -> tuple[str, ...]:
    return ("degrees: nobody would believe that",) if weather.degrees > 40 else ()


async def weather(talk: Talk, model: str = CLAUDE, **rest: Any) -> Structured[Weather]:
    return await ask_for(
        talk.client,
        question(model, **rest),
        Weather,
        name="tell_weather",
        check=too_warm,
        record=lambda request, outcome: talk.records.append((request, outcome)),
    )


async def test_a_tool_is_forced_where_the_model_takes_that() -> None:
    script = [object_call("tell_weather", degrees=21, mood="bad", winds=["north"])]
    async with MessagesServer(script) as server, talking(server) as talk:
        given = await weather(talk)
    assert given.value == Weather(degrees=21, mood=Mood.BAD, winds=("north",))
    assert given.problems == ()
    sent = server.requests[0].body
    assert sent["tool_choice"]["name"] == "tell_weather"
    assert sent["tools"][0]["input_schema"]["properties"]["degrees"]["maximum"] == 60


async def test_a_model_that_refuses_a_forced_tool_is_asked_in_words_to_call_it() -> None:
    async with MessagesServer([object_call("tell_weather", degrees=1)]) as server, talking(server) as talk:
        given = await weather(talk, "claude-opus-5-5")
    assert given.value.degrees == 1
    assert "tool_choice" not in server.requests[0].body
    assert "Answer only by calling the tool" in server.requests[0].said()


@pytest.mark.parametrize(
    "text",
    ['{"degrees": 7}', 'Here you are:\n```json\n{"degrees": 7}\n```\nAnything else?', '\n\n {"degrees":7} '],
)
async def test_a_model_without_tools_answers_in_words_with_or_without_a_fence(text: str) -> None:
    async with MessagesServer([Reply(text=text)]) as server, talking(server) as talk:
        given = await weather(talk, LOCAL)
    assert given.value.degrees == 7
    assert "tools" not in server.requests[0].body
    assert "JSON Schema" in server.requests[0].said()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (object_call("tell_weather", degrees="warm"), "degrees: it should be a valid integer"),
        (object_call("tell_weather", degrees=99), "less than or equal to 60"),
        (object_call("tell_weather"), "degrees: it is missing"),
        (object_call("tell_weather", degrees=55), "nobody would believe that"),
        (call("tell_weather", '{"degrees": 1, "degrees": 2}'), "the key 'degrees' appears twice"),
        (call("tell_weather", '{"degrees": NaN}'), "NaN is no JSON value"),
        (call("tell_weather", "{degrees"), "no usable JSON"),
        (object_call("rain_dance", degrees=1), "there is no tool 'rain_dance'; call `tell_weather`"),
        (
            call("tell_weather", {"degrees": 1}, more_tools=(("tell_weather", '{"degrees": 2}'),)),
            "holds 2 different objects: give one",
        ),
        (Reply(text="I would rather not say."), "holds no JSON object"),
        (Reply(text='{"degrees": 1} or {"degrees": 2}'), "holds 2 different objects: give one"),
        (Reply(), "holds no JSON object"),
        (call("tell_weather", '{"degr', stop_reason="max_tokens"), "reached its limit"),
    ],
)
async def test_what_is_wrong_goes_back_to_the_model_and_is_put_right(wrong: Reply, told: str) -> None:
    script = [wrong, object_call("tell_weather", degrees=4)]
    async with MessagesServer(script) as server, talking(server) as talk:
        given = await weather(talk)
    assert given.value.degrees == 4
    assert len(given.problems) == 1
    assert told in server.requests[1].said()
    assert told not in server.requests[0].said()
    roles = [message["role"] for message in server.requests[1].body["messages"]]
    assert roles == ["user", "assistant", "user"]


async def test_after_two_repairs_it_is_given_up_with_the_last_reasons() -> None:
    async with MessagesServer([Reply(text="no")], repeat=True) as server, talking(server) as talk:
        with pytest.raises(NotOfFormError, match="2 repairs included") as caught:
            await weather(talk)
    assert caught.value.problems == ("the answer holds no JSON object",)
    assert caught.value.kind is ModelErrorKind.UNREADABLE
    assert len(server.requests) == len(talk.records) == 3


async def test_an_answer_that_was_too_long_is_asked_for_again_with_more_room() -> None:
    long = Reply(text="x", stop_reason="max_tokens", usage={"input_tokens": 1, "output_tokens": 100})
    script = [long, object_call("tell_weather", degrees=4)]
    async with MessagesServer(script) as server, talking(server) as talk:
        await weather(talk, max_tokens=100)
    assert [seen.body["max_tokens"] for seen in server.requests] == [100, 200]


async def test_a_failed_call_is_not_taken_for_a_wrong_answer() -> None:
    async with MessagesServer([Reply(stop_reason="refusal")]) as server, talking(server) as talk:
        with pytest.raises(ModelError) as caught:
            await weather(talk)
    assert caught.value.kind is ModelErrorKind.REFUSED
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "text",
    ["", "no braces", "}{", '{"a": 1, "a": 2}', '{"a": Infinity}', "{name}", "[" * 5_000, '{"a":' * 5_000],
)
def test_what_holds_no_clear_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        values_in(text, [])


# ------------------------------------------------------------------ reasons to stop


@pytest.mark.parametrize(
    ("reason", "kind", "advice"),
    [
        ("max_tokens", ModelErrorKind.TRUNCATED, "raise max_tokens"),
        ("model_context_window_exceeded", ModelErrorKind.TRUNCATED, "shorten the goal or the context"),
        ("refusal", ModelErrorKind.REFUSED, "harmful, they say"),
    ],
)
async def test_an_answer_that_cannot_be_used_says_why_and_is_kept(
    reason: str, kind: ModelErrorKind, advice: str
) -> None:
    details = {"type": "refusal", "explanation": "harmful, they say"} if reason == "refusal" else None
    script = [Reply(text="so far", stop_reason=reason, stop_details=details)]
    async with MessagesServer(script) as server, talking(server) as talk:
        with pytest.raises(ModelError, match=advice) as caught:
            await ask(talk.client, CLAUDE, "You plan.", "What now?")
    assert caught.value.kind is kind
    assert caught.value.answer is not None
    assert caught.value.answer.text == "so far"


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "tool_use", "tea_time"])
async def test_an_answer_that_ended_by_itself_is_used(reason: str) -> None:
    async with MessagesServer([Reply(text="yes", stop_reason=reason)]) as server, talking(server) as talk:
        answer = await ask(talk.client, CLAUDE, "You plan.", "What now?", temperature=0.0)
    assert answer.text == "yes"
    sent = server.requests[0].body
    assert sent["system"] == [{"type": "text", "text": "You plan.", "cache_control": {"type": "ephemeral"}}]
    assert sent["messages"] == [{"role": "user", "content": [{"type": "text", "text": "What now?"}]}]


async def test_an_unknown_reason_with_nothing_said_is_no_answer() -> None:
    async with MessagesServer([Reply(stop_reason="tea_time")]) as server, talking(server) as talk:
        with pytest.raises(ModelError, match="said nothing") as caught:
            await complete(talk.client, question())
    assert caught.value.kind is ModelErrorKind.UNREADABLE


async def test_a_paused_turn_is_taken_up_again_where_it_was_left() -> None:
    script = [Reply(text="first ", stop_reason="pause_turn"), Reply(text="second")]
    async with MessagesServer(script) as server, talking(server) as talk:
        answer = await complete(talk.client, question())
    assert (answer.text, answer.stop_reason) == ("first second", StopReason.END_TURN)
    assert answer.usage.input_tokens == 200
    assert server.requests[1].body["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "first "}],
    }


async def test_a_turn_that_is_paused_for_ever_is_given_up() -> None:
    paused = [Reply(text="x", stop_reason="pause_turn")]
    async with MessagesServer(paused, repeat=True) as server, talking(server) as talk:
        with pytest.raises(ModelError, match="paused the turn more than 3 times"):
            await complete(talk.client, question())
    assert len(server.requests) == 4
