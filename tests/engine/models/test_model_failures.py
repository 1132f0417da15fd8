"""What goes wrong between here and a model has a kind, a reason and something to do about it."""

from __future__ import annotations

import asyncio
import logging
import socket
from datetime import UTC, datetime

import pytest

from engine.models.client import MessagesClient
from engine.models.endpoint import Endpoint, Retries, Timeouts
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import ModelAnswer
from tests.engine.models.model_talk import EndlessClock, NotedClock, question, talking
from tests.messages_server import MessagesServer, Reply, failure
from tests.messages_server.replies import Then

ONCE = Retries(attempts=1)
KEY = "sk-ant-a-very-secret-key"


@pytest.mark.parametrize(
    ("status", "kind", "advice"),
    [
        (400, ModelErrorKind.BAD_REQUEST, "does not take the request"),
        (401, ModelErrorKind.AUTHENTICATION, "check ANTHROPIC_API_KEY"),
        (402, ModelErrorKind.PERMISSION, "settle its billing"),
        (403, ModelErrorKind.PERMISSION, "use another key or model"),
        (404, ModelErrorKind.NOT_FOUND, "check its name and ANTHROPIC_BASE_URL"),
        (413, ModelErrorKind.TOO_LARGE, "shorten"),
        (302, ModelErrorKind.BAD_REQUEST, "does not take the request"),
    ],
)
async def test_what_would_fail_again_is_not_tried_again(
    status: int, kind: ModelErrorKind, advice: str
) -> None:
    script = [failure(status, message="no, because", request_id="req_9", location="http://127.0.0.1:9/")]
    async with MessagesServer(script) as server, talking(server) as talk:
        with pytest.raises(ModelError, match=advice) as caught:
            await talk.send()
    error = caught.value
    assert (error.kind, error.status, error.request_id, error.retries) == (kind, status, "req_9", 0)
    assert "no, because" in error.message
    assert len(server.requests) == 1
    assert [outcome for _, outcome in talk.records] == [error]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, ModelErrorKind.RATE_LIMIT),
        (500, ModelErrorKind.SERVER),
        (502, ModelErrorKind.SERVER),
        (503, ModelErrorKind.OVERLOADED),
        (504, ModelErrorKind.TIMEOUT),
        (529, ModelErrorKind.OVERLOADED),
    ],
)
async def test_what_may_pass_is_tried_three_times_with_growing_waits(
    status: int, kind: ModelErrorKind
) -> None:
    async with MessagesServer([failure(status)], repeat=True) as server, talking(server) as talk:
        with pytest.raises(ModelError) as caught:
            await talk.send()
    assert (caught.value.kind, caught.value.status, caught.value.retries) == (kind, status, 2)
    assert len(server.requests) == 3
    assert talk.clock.slept == [0.5, 1.0]


async def test_a_call_that_recovers_says_how_often_it_was_tried_again() -> None:
    script = [failure(529), failure(500), Reply(text="at last")]
    async with MessagesServer(script) as server, talking(server) as talk:
        answer = await talk.send()
    assert (answer.text, answer.retries) == ("at last", 2)
    assert [outcome for _, outcome in talk.records] == [answer]


async def test_an_endpoint_that_asks_to_wait_is_given_that_time() -> None:
    script = [failure(429, retry_after="7"), Reply(text="x")]
    async with MessagesServer(script) as server, talking(server) as talk:
        await talk.send()
    assert talk.clock.slept == [7.5]


async def test_an_endpoint_that_asks_for_too_long_is_not_waited_for() -> None:
    async with MessagesServer([failure(429, retry_after="3600")]) as server, talking(server) as talk:
        with pytest.raises(ModelError) as caught:
            await talk.send()
    assert (caught.value.kind, caught.value.retry_after_s) == (ModelErrorKind.RATE_LIMIT, 3600.0)
    assert talk.clock.slept == []


@pytest.mark.parametrize(
    ("milliseconds", "value", "seconds"),
    [
        (None, "2.5", 2.5),
        ("1500", "9", 1.5),
        (None, "Sun, 22 Nov 2026 06:00:30 GMT", 30.0),
        (None, "Sun, 22 Nov 2026 05:00:00 GMT", 0.0),
        (None, "soon", None),
        (None, "-3", None),
        (None, "inf", None),
        (None, None, None),
    ],
)
def test_the_time_to_wait_is_seconds_milliseconds_or_a_date(
    milliseconds: str | None, value: str | None, seconds: float | None
) -> None:
    now = datetime(2026, 11, 22, 6, 0, 0, tzinfo=UTC)
    # Importing the SDK takes a second, which no other test process is to spend.
    from engine.models.http import retry_after

    assert retry_after(milliseconds, value, now=now) == seconds


@pytest.mark.parametrize(
    ("then", "kind"),
    [
        ("drop", ModelErrorKind.NETWORK),
        ("end", ModelErrorKind.NETWORK),
        ("error", ModelErrorKind.OVERLOADED),
        ("garbage", ModelErrorKind.UNREADABLE),
        ("binary", ModelErrorKind.UNREADABLE),
        ("endless", ModelErrorKind.UNREADABLE),
    ],
)
async def test_a_stream_that_breaks_is_tried_again_and_its_pieces_are_taken_back(
    then: Then, kind: ModelErrorKind
) -> None:
    broken = Reply(text="wrong beginning", after=4, then=then)
    async with MessagesServer([broken, Reply(text="right answer")]) as server, talking(server) as talk:
        answer = await talk.send()
    assert (answer.text, answer.retries, answer.partial) == ("right answer", 1, False)
    assert talk.shown("text") == "right answer"

    async with MessagesServer([broken]) as server, talking(server, retries=ONCE) as talk:
        with pytest.raises(ModelError) as caught:
            await talk.send()
    assert caught.value.kind is kind
    assert caught.value.answer is not None
    assert caught.value.answer.partial


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("rate_limit_error", ModelErrorKind.RATE_LIMIT),
        ("api_error", ModelErrorKind.SERVER),
        ("invalid_request_error", ModelErrorKind.BAD_REQUEST),
        ("something_new", ModelErrorKind.SERVER),
    ],
)
async def test_an_error_inside_a_stream_has_its_own_kind(said: str, kind: ModelErrorKind) -> None:
    reply = Reply(text="x", after=1, then="error", error=said)
    async with MessagesServer([reply]) as server, talking(server, retries=ONCE) as talk:
        with pytest.raises(ModelError) as caught:
            await talk.send()
    assert caught.value.kind is kind


@pytest.mark.parametrize("then", ["drop", "end", "error", "garbage"])
async def test_an_answer_that_is_whole_stays_whole_whatever_comes_behind_it(then: Then) -> None:
    # message_start, one block of three events, message_delta; what breaks off is message_stop.
    reply = Reply(text="whole", after=5, then=then)
    async with MessagesServer([reply]) as server, talking(server, retries=ONCE) as talk:
        answer = await talk.send()
    assert (answer.text, answer.partial) == ("whole", False)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body="<html>Sign in</html>", headers={"content-type": "text/html"}),
        Reply(body='{"type": "message", "content": []}'),
        Reply(body="", headers={"content-type": "text/event-stream"}),
    ],
)
async def test_what_is_no_stream_of_a_model_is_refused(reply: Reply) -> None:
    async with MessagesServer([reply]) as server, talking(server, retries=ONCE) as talk:
        with pytest.raises(ModelError) as caught:
            await talk.send()
    assert caught.value.kind in (ModelErrorKind.UNREADABLE, ModelErrorKind.NETWORK)


@pytest.mark.parametrize(
    "event",
    [
        '{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}',
        '{"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}}',
        '{"type": "content_block_start", "index": 0, "content_block": {}}',
        '{"type": "content_block_start", "index": -1, "content_block": {"type": "text"}}',
        '{"type": "message_start", "message": {"usage": {"input_tokens": "many"}}}',
        '{"type": "message_start", "type": "message_stop"}',
        '{"type": 7}',
        "[]",
        "7",
        "{" * 1,
        "[" * 5_000,
    ],
)
async def test_events_that_make_no_sense_are_refused_and_not_guessed_at(event: str) -> None:
    reply = Reply(body=f"data: {event}\n\n", headers={"content-type": "text/event-stream"})
    async with MessagesServer([reply]) as server, talking(server, retries=ONCE) as talk:
        with pytest.raises(ModelError, match="stream") as caught:
            await talk.send()
    assert caught.value.kind is ModelErrorKind.UNREADABLE


async def test_events_and_blocks_of_kinds_to_come_do_no_harm() -> None:
    lines = [
        '{"type": "message_start", "message": {}}',
        '{"type": "a_new_event", "index": 3}',
        '{"type": "content_block_start", "index": 0, "content_block": {"type": "a_new_block", "n": 1}}',
        '{"type": "content_block_delta", "index": 0, "delta": {"type": "a_new_delta", "x": 1}}',
        '{"type": "content_block_stop", "index": 0}',
        '{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}',
        '{"type": "message_stop"}',
    ]
    body = "".join(f"data: {line}\n\n" for line in lines)
    reply = Reply(body=body, headers={"content-type": "text/event-stream"})
    async with MessagesServer([reply]) as server, talking(server, retries=ONCE) as talk:
        answer = await talk.send()
    assert not answer.partial
    assert answer.text == ""


# ------------------------------------------------------------------ time


@pytest.mark.parametrize(
    ("reply", "timeouts", "said"),
    [
        (Reply(silent=True), Timeouts(first_byte_s=0.03), "nothing within 0.03 s"),
        (Reply(text="x", after=0, then="hold"), Timeouts(first_byte_s=0.03), "nothing within 0.03 s"),
        (Reply(text="x", after=2, then="hold"), Timeouts(between_s=0.03), "nothing between two pieces"),
        (Reply(text="x", after=2, then="hold"), Timeouts(total_s=0.05), "no whole answer within 0.05 s"),
        (Reply(silent=True), Timeouts(total_s=0.05), "no whole answer within 0.05 s"),
    ],
    ids=["no head", "no first byte", "silence between pieces", "total, in a stream", "total, before it"],
)
async def test_each_part_of_a_call_has_its_time(reply: Reply, timeouts: Timeouts, said: str) -> None:
    async with MessagesServer([reply]) as server, talking(server, timeouts=timeouts, retries=ONCE) as talk:
        with pytest.raises(ModelError, match=said) as caught:
            await talk.send()
        await server.emptied()
    assert caught.value.kind is ModelErrorKind.TIMEOUT


class _LateClock(NotedClock):
    """The call's time ends in the first wait."""

    async def sleep(self, seconds: float) -> None:
        raise TimeoutError


async def test_a_call_whose_time_ends_while_it_waits_says_what_it_waited_for() -> None:
    async with MessagesServer([failure(529)]) as server, talking(server, clock=_LateClock()) as talk:
        with pytest.raises(ModelError, match="the attempt before: the endpoint is overloaded") as caught:
            await talk.send()
    assert caught.value.kind is ModelErrorKind.TIMEOUT


async def test_a_slow_answer_within_its_time_is_an_answer() -> None:
    reply = Reply(text="slow but sure", head_delay_ms=20, first_byte_delay_ms=20)
    async with MessagesServer([reply]) as server, talking(server) as talk:
        assert (await talk.send()).text == "slow but sure"


async def test_silence_is_tried_again() -> None:
    # More attempts than needed: on a loaded machine an answer may be late too.
    script = [Reply(silent=True), *[Reply(text="x")] * 20]
    timeouts, retries = Timeouts(first_byte_s=0.1), Retries(attempts=21)
    async with MessagesServer(script) as server, talking(server, timeouts=timeouts, retries=retries) as talk:
        answer = await talk.send()
    assert answer.text == "x"
    assert answer.retries >= 1


# ------------------------------------------------------------------ network and keys


async def test_an_address_where_nobody_listens_says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        client = MessagesClient(Endpoint(url), retries=ONCE)
        with pytest.raises(ModelError, match="check the address and the network") as caught:
            await client.send(question())
        await client.close()
    assert caught.value.kind is ModelErrorKind.NETWORK


async def test_a_local_endpoint_needs_no_key_and_is_sent_none_of_this_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    async with MessagesServer([Reply(text="x")]) as server, talking(server) as talk:
        await talk.send()
    assert "authorization" not in server.requests[0].headers
    assert KEY not in str(server.requests[0].headers)


async def test_a_key_that_is_given_is_sent() -> None:
    async with MessagesServer([Reply(text="x")]) as server, talking(server, key=KEY) as talk:
        await talk.send()
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_what_goes_to_this_machine_passes_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with MessagesServer([Reply(text="x")]) as server, talking(server, retries=ONCE) as talk:
        assert (await talk.send()).text == "x"


async def test_a_key_is_in_no_error_log_or_representation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    script = [failure(401, message=f"invalid key {KEY}"), Reply(text="x", after=1, then="drop")]
    async with MessagesServer(script) as server, talking(server, key=KEY, retries=ONCE) as talk:
        for _ in script:
            with pytest.raises(ModelError) as caught:
                await talk.send()
            shown = [repr(caught.value), str(caught.value), repr(caught.getrepr(style="long"))]
            assert not any(KEY in text for text in shown)
        assert KEY not in repr(talk.client) + repr(Endpoint(server.url, KEY)) + repr(talk.records)
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("https://api.anthropic.com", "", "set ANTHROPIC_API_KEY"),
        ("http://models.example.org", KEY, "in clear"),
        ("https://user:secret@host", "", "user or password"),
        ("ftp://host", "", "cannot be used"),
        ("host:80", "", "cannot be used"),
        ("http://", "", "cannot be used"),
        ("http://host:99999", "", "no URL"),
        ("http://host/?q=1", "", "cannot be used"),
        ("http://ho\nst", "", "cannot be used"),
        ("https://host", "a b", "blanks or characters"),
        ("https://host", "schlüssel", "blanks or characters"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_refused(url: str, key: str, said: str) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        Endpoint(url, key)
    assert "secret" not in str(caught.value)


def test_the_environment_names_endpoint_and_key() -> None:
    local = Endpoint.from_environment({"ANTHROPIC_BASE_URL": " http://localhost:8080 "})
    assert (local.base_url, local.key, local.loopback) == ("http://localhost:8080", "", True)
    remote = Endpoint.from_environment({"ANTHROPIC_API_KEY": KEY})
    assert (remote.host, remote.loopback) == ("api.anthropic.com", False)
    assert Endpoint("http://[::1]:1").loopback
    assert not Endpoint("http://10.0.0.8:8000").loopback


async def test_a_cancelled_task_ends_the_stream_and_records_what_had_come() -> None:
    reply = Reply(text="so far so good", after=4, then="hold")
    async with MessagesServer([reply]) as server, talking(server) as talk:
        sending = asyncio.create_task(talk.send())
        await talk.watched.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await server.emptied()
    ((_, outcome),) = talk.records
    assert isinstance(outcome, ModelAnswer)
    assert outcome.partial
    assert outcome.text


async def test_a_call_may_be_cancelled_before_anything_has_come() -> None:
    async with MessagesServer([Reply(silent=True)]) as server, talking(server) as talk:
        sending = asyncio.create_task(talk.send())
        await server.held.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await server.emptied()
    ((_, outcome),) = talk.records
    assert isinstance(outcome, ModelAnswer)
    assert (outcome.partial, outcome.content, outcome.stop_reason) == (True, (), None)


async def test_a_call_may_be_cancelled_while_it_waits_to_be_tried_again() -> None:
    clock = EndlessClock()
    async with MessagesServer([failure(529)]) as server, talking(server, clock=clock) as talk:
        sending = asyncio.create_task(talk.send())
        await clock.waiting.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    assert len(server.requests) == 1
