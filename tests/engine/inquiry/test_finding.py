"""Searching everything: events of all sessions and memories, as it comes, within bounds."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from inquiry_journal import journal_of

from app.cli.main import main
from app.commands.command_runner import run_command
from app.commands.headless import open_engine
from app.commands.missions import wait_until
from app.commands.search import event_parts, full_hit, search_workspace, stream_search
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.inquiry.event_search import FIRST_CHUNK, EventSearch
from engine.inquiry.search import Batch, Hit, SearchError, Source, parse_query, run_search


def thought(text: str) -> tuple[str, str, dict[str, str]]:
    return "pilot", "thought.recorded", {"text": text, "type": "inference", "goal": ""}


async def events_with(workspace: Path, text: str, **more: object) -> tuple[list[Hit], list[Batch]]:
    batches: list[Batch] = []
    await run_search(parse_query(text, **more), [(Source.EVENT, EventSearch(workspace))], batches.append)
    return [hit for batch in batches for hit in batch.hits], batches


async def called(engine: Engine, command: str, **args: object) -> None:
    receipt = await engine.submit(cmd.CallTool(agent="pilot", command=command, args=args))
    assert receipt.ok, receipt.message
    await wait_until(engine, "pilot", lambda state: not state.requests and not state.busy)


# ------------------------------------------------------------------ words


def test_words_between_quotes_belong_together_and_none_is_looked_for_twice() -> None:
    assert parse_query('pump "not primed" pump').words == ("pump", "not primed")


@pytest.mark.parametrize("text", ["", "   ", '""', "x" * 401, " ".join(map(str, range(17)))])
def test_what_cannot_be_looked_for_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(SearchError, match=r"say what to look for|characters|too many"):
        parse_query(text)


# ------------------------------------------------------------------ events


async def test_all_words_must_occur_in_any_case_and_the_newest_comes_first(tmp_path: Path) -> None:
    texts = ["The Pump is dry", "the pump", "dry as the PUMP", "dry"]
    await journal_of(tmp_path, map(thought, texts))
    hits, _ = await events_with(tmp_path, "pump dry")
    assert [(hit.ref, hit.kind, hit.text.split(" · ")[-1]) for hit in hits] == [
        ("pilot:3", "thought.recorded", "inference"),
        ("pilot:1", "thought.recorded", "inference"),
    ]
    assert "dry as the PUMP" in hits[0].text


async def test_names_of_fields_are_not_what_was_said(tmp_path: Path) -> None:
    await journal_of(tmp_path, [thought("nothing"), thought("the text says goal")])
    hits, _ = await events_with(tmp_path, "goal")
    assert [hit.ref for hit in hits] == ["pilot:2"]


@pytest.mark.parametrize("word", ["100%", "a_b", 'so"and', "back\\slash", "tab\there", "Überlauf", "日本"])
async def test_signs_of_patterns_quotes_and_other_scripts_stand_for_themselves(
    tmp_path: Path, word: str
) -> None:
    await journal_of(tmp_path, [thought(f"well, {word}!"), thought("100 aXb so and backslash berlauf")])
    asked = word if '"' in word else f'"{word.lower()}"'
    hits, _ = await events_with(tmp_path, asked)
    assert [hit.ref for hit in hits] == ["pilot:1"]


async def test_agent_and_kind_choose_and_memorys_stream_is_left_to_memory(tmp_path: Path) -> None:
    await journal_of(
        tmp_path,
        [
            thought("pump"),
            ("other", "thought.recorded", {"text": "pump"}),
            ("pilot", "action.requested", {"args": {"path": "pump.txt"}}),
            ("pilot", "actions.strange", {"text": "pump"}),
            ("workspace@memory", "memory.stored", {"content": "pump"}),
        ],
    )
    assert {hit.ref for hit in (await events_with(tmp_path, "pump"))[0]} == {
        *("pilot:1", "other:1", "pilot:2", "pilot:3")
    }
    assert {hit.ref for hit in (await events_with(tmp_path, "pump", agent="other"))[0]} == {"other:1"}
    assert {hit.ref for hit in (await events_with(tmp_path, "pump", kind="action"))[0]} == {"pilot:2"}
    assert await events_with(tmp_path, "pump", kind="memory") == ([], [])


async def test_first_hits_are_told_before_the_rest_is_looked_at_and_no_more_than_asked(
    tmp_path: Path,
) -> None:
    """T18: the first chunk is small, whatever the journal holds."""
    await journal_of(tmp_path, (thought(f"number {number}") for number in range(3 * FIRST_CHUNK)))
    hits, batches = await events_with(tmp_path, "number", limit=600)
    assert (batches[0].looked_at, len(batches[0].hits)) == (FIRST_CHUNK, FIRST_CHUNK)
    assert len(hits) == 600
    assert hits[0].ref == f"pilot:{3 * FIRST_CHUNK}"
    assert (batches[-1].done, batches[-1].more) == (True, True)
    assert [batch.done for batch in batches[:-1]] == [False] * (len(batches) - 1)


async def test_a_search_ends_when_its_task_is_cancelled(tmp_path: Path) -> None:
    await journal_of(tmp_path, (thought(f"number {number}") for number in range(12 * FIRST_CHUNK)))
    told: list[Batch] = []

    def tell(batch: Batch) -> None:
        told.append(batch)
        search.cancel()

    query = parse_query("number", limit=10_000)
    search = asyncio.create_task(run_search(query, [(Source.EVENT, EventSearch(tmp_path))], tell))
    with pytest.raises(asyncio.CancelledError):
        await search
    assert told
    assert not any(batch.done for batch in told)


async def test_a_search_writes_nothing_to_the_journal(tmp_path: Path) -> None:
    await journal_of(tmp_path, [thought("pump")])
    path = tmp_path / ".pilothouse" / "journal.db"
    before = path.read_bytes()
    await events_with(tmp_path, "pump")
    assert path.read_bytes() == before


async def test_a_journal_that_cannot_be_read_is_said_and_not_raised(tmp_path: Path) -> None:
    hits, batches = await events_with(tmp_path, "pump")
    assert hits == []
    assert batches[-1].done
    assert "cannot be read" in batches[-1].problem


async def test_an_event_has_its_session_and_large_answers_are_looked_into(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        session = engine.session
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await called(engine, "write", path="long.txt", content="x\n" * 60_000 + "a needle here\n")
        await called(engine, "read", path="long.txt")
        hits, _ = await events_with(tmp_path, '"a needle here"', kind="action.finished")
        parts = await full_hit(engine, Source.EVENT, hits[0].ref)
    assert len(hits) == 1
    assert (hits[0].session, hits[0].agent) == (session, "pilot")
    assert "a needle here" in hits[0].text
    assert hits[0].ref in parts[0][0]


# ------------------------------------------------------------------ all together


async def _with_pumps(workspace: Path) -> None:
    async with open_engine(workspace) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.Believe(agent="pilot", key="pump", value="is\x1b[2J primed"))
        told = {"title": "here"}
        made = await engine.submit(cmd.Remember(verb="create_workflow", arguments=told))
        fact = {"workflow_id": made.data["id"], "content": "a pump must be primed", "memory_type": "fact"}
        await engine.submit(cmd.Remember(verb="store", arguments=fact))


async def test_one_search_finds_events_and_memories_newest_first(tmp_path: Path) -> None:
    await _with_pumps(tmp_path)
    code, answer, text = await search_workspace(tmp_path, "pump primed")
    rows = answer["results"]
    assert code == 0
    assert {row["source"] for row in rows} == {"event", "memory"}
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
    assert "\x1b" not in text
    _code, only, _text = await search_workspace(tmp_path, "pump primed", kind="memory")
    assert {row["source"] for row in only["results"]} == {"memory"}


async def test_a_search_goes_on_beside_an_engine_and_through_one(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.Believe(agent="pilot", key="sky", value="blue"))
        beside = await search_workspace(tmp_path, "sky blue", kind="event")
        batches: list[Batch] = []
        await stream_search(engine, parse_query("sky blue", kind="event"), batches.append)
    hits = [hit.ref for batch in batches for hit in batch.hits]
    assert hits == [row["ref"] for row in beside[1]["results"]]
    assert hits


async def test_an_event_is_shown_field_by_field(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        receipt = await engine.submit(cmd.Believe(agent="pilot", key="sky", value="two\nlines"))
        event = await engine.store.get(receipt.event)
    assert event is not None
    parts = event_parts(event)
    assert parts[0][0].startswith(f"{receipt.event} · ")
    assert any("two" in text for _title, text in parts)


async def test_a_word_of_the_bar_searches_without_a_screen(tmp_path: Path) -> None:
    await _with_pumps(tmp_path)
    code, answer, _text = await run_command(tmp_path, "search pump primed")
    assert code == 0
    assert {row["source"] for row in answer["results"]} == {"event", "memory"}
    assert (await run_command(tmp_path, "search"))[0] == 2


def test_the_command_line_searches_and_answers_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(_with_pumps(tmp_path))
    where = ["--workspace", str(tmp_path), "--json"]
    assert main(["search", "pump", "primed", *where]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {"event", "memory"} == set(answer["looked_at"])
    assert main(["search", "must be", "--kind", "memory", *where]) == 0
    assert len(json.loads(capsys.readouterr().out.splitlines()[-1])["results"]) == 1
    assert main(["search", "x" * 500, *where]) == 2


def test_where_there_is_no_journal_a_search_makes_none(tmp_path: Path) -> None:
    assert main(["search", "pump", "--workspace", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []
