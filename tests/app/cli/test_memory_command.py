"""`pilothouse memory`: adding, finding and counting, also beside a running engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.main import main
from app.cli.memory import MemoryOptions, add_memory, query_memory
from app.commands.headless import open_engine
from engine.core import commands as cmd
from engine.core.journal import JournalLocked, JournalMissing


async def _with_some(workspace: Path) -> None:
    async with open_engine(workspace) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.AdoptGoal(agent="pilot", text="list the files"))
    for text, kind in (("the pump must be primed", "warning"), ("the sky is\x1b[2J blue", "fact")):
        code, answer, _ = await add_memory(workspace, MemoryOptions(text=text, type=kind))
        assert (code, answer["ok"]) == (0, True)


async def test_what_was_added_is_found_with_score_level_type_age_and_id(tmp_path: Path) -> None:
    await _with_some(tmp_path)
    code, answer, text = await query_memory(tmp_path, "search", MemoryOptions(text="pumps", limit=1))
    (row,) = answer["results"]
    assert (code, answer["note"]) == (0, "")
    assert (row["content"], row["level"], row["type"]) == ("the pump must be primed", "episodic", "warning")
    assert 0 < row["score"] <= 1
    assert row["keyword"] > 0
    for word in (f"{row['score']:.2f}", "episodic", "warning", row["id"], "the pump must be primed"):
        assert word in text


async def test_what_is_shown_is_cleaned(tmp_path: Path) -> None:
    await _with_some(tmp_path)
    _code, _answer, text = await query_memory(tmp_path, "search", MemoryOptions(text="sky"))
    assert "\x1b" not in text
    assert "blue" in text


async def test_stats_count_and_say_what_goes_next(tmp_path: Path) -> None:
    await _with_some(tmp_path)
    _code, answer, text = await query_memory(tmp_path, "stats", MemoryOptions())
    assert dict(answer["by_type"]) == {"warning": 1, "fact": 1, "reasoning_step": 1}
    assert sum(count for _, count in answer["by_workflow"]) == answer["total"] == 3
    assert len(answer["expiring"]) == 3
    assert "goes in 30d" in text


async def test_looking_goes_on_beside_an_engine_and_adding_says_who_holds_it(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as engine:
        told = {"title": "here"}
        made = await engine.submit(cmd.Remember(verb="create_workflow", arguments=told))
        fact = {"workflow_id": made.data["id"], "content": "now and here", "memory_type": "fact"}
        await engine.submit(cmd.Remember(verb="store", arguments=fact))
        _code, answer, _ = await query_memory(tmp_path, "search", MemoryOptions(text="here"))
        assert [row["content"] for row in answer["results"]] == ["now and here"]
        assert (await query_memory(tmp_path, "stats", MemoryOptions()))[1]["total"] == 1
        with pytest.raises(JournalLocked, match=r"Process \d+"):
            await add_memory(tmp_path, MemoryOptions(text="x"))


async def test_what_is_missing_in_the_tables_is_read_from_the_journal(tmp_path: Path) -> None:
    await _with_some(tmp_path)
    database = tmp_path / ".pilothouse" / "memory.db"
    whole = (await query_memory(tmp_path, "stats", MemoryOptions()))[1]
    for content in (None, b"no database"):
        database.unlink()
        if content is not None:
            database.write_bytes(content)
        _code, answer, _ = await query_memory(tmp_path, "stats", MemoryOptions())
        assert "folded from the journal" in answer["note"]
        assert answer["by_type"] == whole["by_type"]
        assert (database.read_bytes() if content else database.exists()) == (content or False)
        database.touch()


async def test_the_past_is_found_as_it_was(tmp_path: Path) -> None:
    await _with_some(tmp_path)
    _code, answer, _ = await query_memory(tmp_path, "search", MemoryOptions(text="sky pump"))
    assert len(answer["results"]) >= 2
    _code, before, _ = await query_memory(tmp_path, "search", MemoryOptions(text="sky pump", as_of=3))
    assert before["results"] == []
    code, _answer, text = await query_memory(tmp_path, "search", MemoryOptions(text="sky", as_of=10**6))
    assert (code, "there is no event" in text) == (2, True)


async def test_to_an_agents_goal_something_is_added_by_its_name(tmp_path: Path) -> None:
    await _with_some(tmp_path)
    code, answer, _ = await add_memory(tmp_path, MemoryOptions(text="for you", agent="pilot"))
    assert code == 0
    _code, stats, _ = await query_memory(
        tmp_path, "stats", MemoryOptions(workflow=answer["memory"]["workflow"])
    )
    assert dict(stats["by_type"])["reasoning_step"] == 1
    code, answer, text = await add_memory(tmp_path, MemoryOptions(text="x", type="rumour"))
    assert (code, answer["ok"]) == (1, False)
    assert "memory_type" in text


def test_the_command_line_answers_in_json(tmp_path: Path, capsys: Any) -> None:
    common = ["--workspace", str(tmp_path), "--json"]
    assert main(["memory", "add", "tides turn", "--type", "fact", "--tag", "Sea", *common]) == 0
    added = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert added["memory"]["tags"][:1] == ["sea"]
    assert main(["memory", "search", "tide", "--tag", "sea", *common]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["id"] == added["memory"]["id"]
    assert main(["memory", "stats", *common]) == 0
    assert json.loads(capsys.readouterr().out)["total"] == 1
    assert main(["memory", "search", "x", "--workflow", "w99", *common]) == 2
    assert "no workflow" in capsys.readouterr().err


async def test_judgements_are_listed_with_their_place_and_the_figures_of_todays_search(
    tmp_path: Path,
) -> None:
    await _with_some(tmp_path)
    code, answer, text = await query_memory(tmp_path, "judge", MemoryOptions())
    assert (code, answer["judgements"]) == (0, [])
    assert "nothing was judged yet" in text
    _, found, _ = await query_memory(tmp_path, "search", MemoryOptions(text="pump"))
    ident = found["results"][0]["id"]
    async with open_engine(tmp_path) as engine:
        for query, right in (("pump", True), ("blue\x1b[2J sky", True), ("primed", False)):
            said = {"query": query, "memory_id": ident, "right": right}
            receipt = await engine.submit(cmd.Remember(verb="judge_memory", arguments=said))
            assert receipt.ok
    code, answer, text = await query_memory(tmp_path, "judge", MemoryOptions())
    assert [(row["query"], row["place"]) for row in answer["judgements"]][0::2] == [
        ("pump", 1),
        ("primed", 1),
    ]
    assert answer["figures"] == {"queries": 2, "recall": 0.5, "mrr": 0.5, "wrong": 1, "wrong_first": 1}
    assert "recall@5 0.50, MRR 0.50; queries with a right answer: 2" in text
    assert "judged wrong: 1; still among the first 5: 1" in text
    assert "\x1b" not in text


async def test_where_nothing_is_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing):
        await query_memory(tmp_path, "search", MemoryOptions(text="x"))
    assert list(tmp_path.iterdir()) == []
