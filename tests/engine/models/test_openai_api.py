"""Servers that speak the API of OpenAI are asked by it, and what they say and refuse of themselves counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.agent.model_calls import send_to_first
from engine.models.choice import ModelChoice
from engine.models.client import MessagesClient
from engine.models.endpoint import Api, Endpoint
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import Message, Piece, StopReason, Text, ToolResult, ToolUse, Usage, user_message
from engine.models.model_table import ModelTable, read_models
from engine.models.request import ANY_TOOL, ModelRequest, ToolSpec
from tests.engine.models.model_talk import EndlessClock, Longest, NotedClock, Talk, question
from tests.messages_server import MessagesServer, Reply, failure
from tests.openai_server import OpenAiServer

MODEL = "small"
LOOK = ToolSpec("look", "look at a place", {"type": "object", "properties": {"at": {"type": "string"}}})
LLAMA = {
    "/v1/models": {"data": [{"id": MODEL, "owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}]},
    "/props": {
        "default_generation_settings": {"n_ctx": 8192},
        "chat_template_caps": {"supports_tools": True},
    },
}
OLLAMA = {
    "/v1/models": {"data": [{"id": "qwen:4b", "owned_by": "library"}]},
    "/api/show": {"model_info": {"qwen3.context_length": 262_144}, "capabilities": ["completion", "tools"]},
    "/api/ps": {"models": []},
}


@asynccontextmanager
async def asking(
    server: MessagesServer,
    api: Api = "openai",
    *,
    key: str = "",
    table: ModelTable | None = None,
    memory: Path | None = None,
) -> AsyncIterator[Talk]:
    clock = NotedClock()
    client = MessagesClient(
        Endpoint(f"{server.url}/v1/", key, api), clock=clock, randomness=Longest(), table=table, memory=memory
    )
    try:
        yield Talk(client, clock)
    finally:
        await client.close()


def described(text: str) -> ModelTable:
    problems: list[str] = []
    table = read_models(text.encode(), "models.toml", problems)
    assert not problems
    return table


ABLE = described(f'[[model]]\nname = "{MODEL}"\ncontext = 8192\ntools = true\njson_schema = true')


async def test_text_thinking_calls_and_usage_come_as_from_the_messages_api() -> None:
    script = [Reply(text="I look.", thinking="Hm.", tool="look", tool_input='{"at": "x"}', piece=3)]
    async with OpenAiServer(script) as server, asking(server, table=ABLE) as talk:
        answer = await talk.send(question(MODEL, tools=(LOOK,)))
    assert answer.text == "I look."
    assert [(use.name, use.input) for use in answer.tool_uses] == [("look", {"at": "x"})]
    assert (answer.stop_reason, answer.model) == (StopReason.TOOL_USE, MODEL)
    assert answer.usage == Usage(90, 20, cache_read_tokens=10)
    assert (talk.shown("thinking"), talk.shown("text")) == ("Hm.", "I look.")
    assert talk.shown("tool_input") == '{"at": "x"}'


async def test_an_exchange_is_sent_as_this_api_has_it() -> None:
    request = ModelRequest(
        MODEL,
        (
            user_message("Look."),
            Message("assistant", (Text("I do."), ToolUse("t1", "look", {"at": "é"}))),
            Message("user", (ToolResult("t1", "a wall"), Text("And now?"))),
        ),
        (Text("You look.", "role", cache=True), Text("At places.", "rules")),
        (LOOK, ToolSpec("go", "go there")),
        tool_choice="go",
        max_tokens=50,
        temperature=0.5,
    )
    async with OpenAiServer([Reply(text="ok")]) as server, asking(server, key="sk-x", table=ABLE) as talk:
        await talk.send(request)
    sent, body = server.requests[0], server.requests[0].body
    assert sent.headers["authorization"] == "Bearer sk-x"
    arguments = json.dumps({"at": "é"}, ensure_ascii=False)
    function = {"name": "look", "arguments": arguments}
    assert body["messages"] == [
        {"role": "system", "content": "You look.\n\nAt places."},
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": "I do.",
            "tool_calls": [{"id": "t1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "a wall"},
        {"role": "user", "content": "And now?"},
    ]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "go"}}
    assert (body["max_tokens"], body["temperature"], body["stream"]) == (50, 0.5, True)
    # It is recorded as all requests are.
    assert talk.records[0][0].body()["system"][0]["text"] == "You look."


async def test_calls_that_all_have_the_number_0_are_told_apart() -> None:
    def together(_seen: Any) -> Reply:
        calls = [
            {"index": 0, "id": f"c{n}", "function": {"name": "look", "arguments": f'{{"at": "{n}"}}'}}
            for n in (1, 2)
        ]
        lines = [{"choices": [{"delta": {"tool_calls": [each]}}]} for each in calls]
        lines.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        body = "".join(f"data: {json.dumps(line)}\n\n" for line in lines)
        return Reply(body=body, headers={"content-type": "text/event-stream"})

    async with OpenAiServer([together]) as server, asking(server, table=ABLE) as talk:
        answer = await talk.send(question(MODEL, tools=(LOOK,), tool_choice=ANY_TOOL))
    assert [use.input["at"] for use in answer.tool_uses] == ["1", "2"]
    assert answer.stop_reason is StopReason.TOOL_USE
    assert answer.usage.estimated


async def test_a_cancelled_call_ends_and_what_had_come_is_recorded() -> None:
    script = [Reply(text="word " * 100, after=5, then="hold")]
    async with OpenAiServer(script) as server, asking(server) as talk:
        work = asyncio.create_task(talk.send(question(MODEL)))
        await server.held.wait()
        await talk.watched.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await server.emptied()
    assert getattr(talk.records[0][1], "partial", False)


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (401, "Incorrect API key provided", ModelErrorKind.AUTHENTICATION),
        (400, "Your API key has expired", ModelErrorKind.AUTHENTICATION),
        (429, "You exceeded your current quota (insufficient_quota)", ModelErrorKind.PERMISSION),
        (400, "Your credit balance is too low", ModelErrorKind.PERMISSION),
        (404, "model 'nothing' not found", ModelErrorKind.NOT_FOUND),
        (400, "The model `nothing` does not exist", ModelErrorKind.NOT_FOUND),
        (400, "request (9030 tokens) exceeds the available context size", ModelErrorKind.TOO_LARGE),
        (429, "Rate limit reached", ModelErrorKind.RATE_LIMIT),
        (503, "Loading model", ModelErrorKind.OVERLOADED),
    ],
)
async def test_what_went_wrong_is_known_by_words_where_the_status_does_not_say(
    status: int, said: str, kind: ModelErrorKind
) -> None:
    async with OpenAiServer([failure(status, message=said)], repeat=True) as server, asking(server) as talk:
        with pytest.raises(ModelError) as caught:
            await talk.send(question(MODEL))
    assert caught.value.kind is kind
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("then", "kind"), [("garbage", "unreadable"), ("drop", "network"), ("error", "overloaded")]
)
async def test_a_stream_that_breaks_is_an_error_of_its_kind(then: Any, kind: str) -> None:
    script = [Reply(text="some words", after=2, then=then)]
    async with OpenAiServer(script, repeat=True) as server, asking(server) as talk:
        with pytest.raises(ModelError) as caught:
            await talk.send(question(MODEL))
    assert caught.value.kind.value == kind
    # Garbage is asked for twice, and no more.
    assert len(server.requests) == (2 if kind == "unreadable" else 3)


# ------------------------------------------------------------------ what a server says and refuses


async def test_llama_cpp_is_asked_once_for_context_tools_and_name() -> None:
    async with (
        OpenAiServer([Reply(text="ok")], repeat=True, pages=LLAMA) as server,
        asking(server, "") as talk,
    ):
        await talk.client.learn("auto")
        known = talk.client.capabilities("auto")
        await talk.send(question("auto"))
        await talk.send(question("auto"))
    assert (known.model, known.context_window, known.tools, known.profile) == (MODEL, 8192, True, "tiny")
    assert (known.json_schema, known.prices) == (True, ())
    assert server.read == ["/v1/models", "/props"]
    assert [seen.body["model"] for seen in server.requests] == [MODEL, MODEL]


async def test_ollama_says_the_context_that_it_gives_and_not_the_one_it_could() -> None:
    async with OpenAiServer(pages=OLLAMA) as server, asking(server) as talk:
        await talk.client.learn("qwen:4b")
        known = talk.client.capabilities("qwen:4b")
    assert (known.context_window, known.tools, talk.client.learned.server) == (4096, True, "Ollama")


@pytest.mark.parametrize(
    "page", [[], {"data": "x"}, {"data": [{"id": 5}, {"id": "m", "context_length": "8"}]}]
)
async def test_a_server_that_says_nonsense_of_itself_is_still_asked(page: Any) -> None:
    pages = {"/v1/models": page, "/props": page, "/api/show": page}
    async with OpenAiServer([Reply(text="ok")], pages=pages) as server, asking(server) as talk:
        assert (await talk.send(question(MODEL))).text == "ok"


@pytest.mark.parametrize("named", [True, False])
async def test_what_a_server_refuses_is_left_out_from_then_on_and_told_once(
    named: bool, tmp_path: Path
) -> None:
    def picky(seen: Any) -> Reply:
        if "temperature" in seen.body:
            return failure(
                400, "invalid_request_error", "temperature is no field" if named else "bad request"
            )
        return Reply(text="ok")

    memory = tmp_path / "endpoints.json"
    script = [picky] * 9
    async with OpenAiServer(script, pages=LLAMA) as server:
        async with asking(server, memory=memory) as talk:
            first = await talk.send(question(MODEL, temperature=0.5))
            second = await talk.send(question(MODEL, temperature=0.5))
        asked = len(server.requests)
        async with asking(server, memory=memory) as later:
            await later.send(question(MODEL, temperature=0.5))
        assert len(server.requests) == asked + 1
    assert sum("from now on" in note for note in first.notes) == 1
    assert not any("from now on" in note for note in second.notes)
    assert "temperature" not in server.requests[-1].body
    assert memory.stat().st_mode & 0o077 == 0


async def test_system_blocks_that_are_refused_stand_before_the_question() -> None:
    def picky(seen: Any) -> Reply:
        if seen.body["messages"][0]["role"] == "system":
            return failure(400, "invalid_request_error", "system role is not supported")
        return Reply(text="ok")

    request = ModelRequest(MODEL, (user_message("Who?"),), (Text("You are it.", "role"),))
    async with OpenAiServer([picky] * 2) as server, asking(server) as talk:
        await talk.send(request)
    assert server.requests[1].body["messages"] == [{"role": "user", "content": "You are it.\n\nWho?"}]


async def test_a_request_that_nothing_helps_fails_as_it_did_at_first() -> None:
    async with OpenAiServer([failure(400, message="no")], repeat=True) as server, asking(server) as talk:
        with pytest.raises(ModelError, match="no"):
            await talk.send(question(MODEL, temperature=0.5))
        assert talk.client.learned.refused == {}
    assert len(server.requests) < 5


@pytest.mark.parametrize("kind", [MessagesServer, OpenAiServer])
async def test_which_api_an_address_speaks_is_found_by_trial(kind: type[MessagesServer]) -> None:
    async with kind([Reply(text="ok")], repeat=True) as server, asking(server, "") as talk:
        assert (await talk.send(question(MODEL))).text == "ok"
        assert (await talk.send(question(MODEL))).text == "ok"
    assert len(server.requests) == 2


async def test_a_model_that_never_calls_the_tool_it_has_to_is_asked_in_words_from_then_on() -> None:
    async with (
        OpenAiServer([Reply(text="words")], repeat=True, pages=LLAMA) as server,
        asking(server) as talk,
    ):
        for _ in range(2):
            await talk.client.learn(MODEL)
            assert talk.client.capabilities(MODEL).tools
            await talk.send(question(MODEL, tools=(LOOK,), tool_choice="look"))
        assert not talk.client.capabilities(MODEL).tools


# ------------------------------------------------------------------ answers that are cut

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize("kind", [MessagesServer, OpenAiServer])
async def test_an_answer_ends_where_its_json_is_whole(kind: type[MessagesServer]) -> None:
    text = 'The schema: {"type": "object"}\n{"city": "a } b"}' + " and so on" * 500
    async with kind([Reply(text=text)]) as server, asking(server, "") as talk:
        answer = await talk.send(question(MODEL, json_schema=CITY))
        await server.emptied()
    assert answer.stop_reason is StopReason.END_TURN
    assert len(answer.text) < 80
    assert answer.usage.estimated


async def test_an_answer_that_repeats_itself_is_cut() -> None:
    lines = "".join(f"{n} is the line number {n * 7}\n" for n in range(100))
    script = [Reply(text=lines), Reply(text=lines + "the same again. " * 5_000)]
    async with OpenAiServer(script) as server, asking(server) as talk:
        whole = await talk.send(question(MODEL))
        cut = await talk.send(question(MODEL))
    assert (whole.text, whole.stop_reason) == (lines, StopReason.END_TURN)
    assert cut.stop_reason is StopReason.REPETITION
    assert len(cut.text) < len(lines) + 1_000


async def test_an_answer_much_longer_than_was_asked_for_is_cut() -> None:
    text = "".join(f"{n:x}." for n in range(20_000))
    async with OpenAiServer([Reply(text=text)]) as server, asking(server) as talk:
        answer = await talk.send(question(MODEL, max_tokens=100))
    assert answer.stop_reason is StopReason.MAX_TOKENS
    assert len(answer.text) < 2_000


# ------------------------------------------------------------------ the operator's table


def test_wrong_entries_of_a_table_are_said_with_their_lines_and_left_out() -> None:
    problems: list[str] = []
    text = '[[model]]\nname = "a"\ncontext = 8192\n\n[[model]]\nname = "b"\ncontext = "8k"\n'
    text += '[[model]]\nname = "c"\nprice_in = 3'
    table = read_models(text.encode(), "models.toml", problems)
    assert [row.name for _, row in table.rows] == ["a"]
    assert [problem.split(": ")[0] for problem in problems] == ["models.toml:7", "models.toml:8"]


def test_a_row_counts_before_the_program_and_an_exact_name_before_a_pattern() -> None:
    table = described(
        '[[model]]\nname = "q*"\ncontext = 4096\nprice_in = 0\nprice_out = 0\n'
        '[[model]]\nname = "q2"\ncontext = 100000\ntemperature = 0.3\nprofile = "tiny"\n'
        '[[model]]\nname = "claude-opus-5"\nprice_in = 1\nprice_out = 2\n'
    )
    plain, exact, claude = (table.capabilities(name) for name in ("q1", "q2", "claude-opus-5"))
    assert (plain.context_window, plain.profile, plain.max_output, plain.known) == (4096, "tiny", 2048, True)
    assert plain.price(1) is not None
    assert (exact.profile, exact.temperature, exact.price(1)) == ("tiny", 0.3, None)
    assert exact.fit(question("q2"))[0].temperature == 0.3
    assert (claude.price(1).output, claude.context_window) == (2, 1_000_000)  # type: ignore[union-attr]


# ------------------------------------------------------------------ which model, and when again


async def test_another_model_is_asked_where_one_cannot_answer_and_no_other_where_the_key_is_wrong() -> None:
    def picky(seen: Any) -> Reply:
        return failure(404, message="no such model") if seen.body["model"] == "gone" else Reply(text="ok")

    async with OpenAiServer([picky], repeat=True) as server, asking(server) as talk:
        answer = await send_to_first(question("gone"), ["also gone", MODEL], talk.send)
        with pytest.raises(ModelError) as caught:
            await send_to_first(question("gone"), [], talk.send)
    assert (answer.text, caught.value.kind) == ("ok", ModelErrorKind.NOT_FOUND)
    async with OpenAiServer([failure(401)], repeat=True) as server, asking(server) as talk:
        with pytest.raises(ModelError):
            await send_to_first(question("a"), ["b"], talk.send)
        assert len(server.requests) == 1


async def test_the_operator_ends_the_wait_before_a_retry() -> None:
    script = [failure(529, retry_after="50"), Reply(text="ok")]
    async with OpenAiServer(script) as server:
        client = MessagesClient(Endpoint(server.url, api="openai"), clock=EndlessClock())
        try:
            waits: list[Piece] = []

            def watch(piece: Piece) -> None:
                waits.append(piece)
                if piece.kind == "wait":
                    client.rests[0].over.set()

            answer = await client.send(question(MODEL), sink=watch)
        finally:
            await client.close()
    assert (answer.text, answer.retries, client.rests) == ("ok", 1, [])
    assert waits[0].text.startswith("overloaded 50")


def test_a_local_server_is_never_billed_as_another_model() -> None:
    local = ModelChoice.from_environment({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1/v1"})
    hosted = ModelChoice.from_environment({"ANTHROPIC_API_KEY": "sk-ant"})
    beside = {"ANTHROPIC_API_KEY": "sk-ant"}
    own = ModelChoice.from_environment(beside, url="http://127.0.0.1:1", api="openai")
    assert local is not None
    assert hosted is not None
    assert own is not None
    assert (local.name, hosted.name, own.name) == ("auto", "claude-sonnet-5-5", "auto")
    assert local.endpoint.base_url == "http://127.0.0.1:1"
    # A key of one vendor goes to no server that the other API is spoken to.
    assert own.endpoint.key == ""
