"""Memory in the cockpit: what is in mind, the browser, and what the operator writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from flight import PATIENCE_S, Flight, cockpit

from engine.core import commands as cmd
from engine.memory import embedder_choice
from tests.rounds import sizes
from widgets.base.dialog import ConfirmDialog
from widgets.base.line_pane import LinePane
from widgets.dialogs.memory_browser import MemoryBrowser
from widgets.panes.beliefs import BeliefsPane, WorkingMemory

FACTS = ("the index answers slowly before noon", "the proxy listens on port 3128", "create_venv took 4 s")


async def write(flight: Flight, verb: str, **arguments: Any) -> dict[str, Any]:
    receipt = await flight.engine.submit(cmd.Remember(agent="pilot-1", verb=verb, arguments=arguments))
    assert receipt.ok, receipt.message
    return receipt.data


async def work_begun(flight: Flight) -> str:
    """The workflow of the agent's goal, once the keeper has made it."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await flight.engine.recall("find_workflow", {"agent": "pilot-1", "goal": "g1"})):
            await asyncio.sleep(0.01)
    return str(found)


@pytest.fixture
async def knowing(tmp_path: Path) -> AsyncIterator[Flight]:
    """A cockpit whose agent has a goal, and facts in the memory of its work; m_ids by their order."""
    async with cockpit(tmp_path / "ws", size=(160, 45)) as flight:
        await flight.goal("create a directory named 'x'")
        await work_begun(flight)
        yield flight


async def facts(flight: Flight) -> list[str]:
    """Put the facts into the memory of the agent's work; their ids."""
    stored = [await write(flight, "store_memory", content=fact, memory_type="fact") for fact in FACTS]
    return [str(one["id"]) for one in stored]


def in_mind(flight: Flight) -> list[str]:
    return [row.key for row in flight.memory.rows if row.key.startswith("memory:")]


async def test_memories_in_mind_appear_beside_the_beliefs_and_keys_change_them(knowing: Flight) -> None:
    ids = await facts(knowing)
    await knowing.shows("working memory is empty; M", "belief")
    await write(knowing, "focus_memory", memory_id=ids[0])
    await write(knowing, "change_working_memory", add=ids[1:])
    await knowing.until(lambda: len(in_mind(knowing)) == 3, "three memories in mind")
    assert in_mind(knowing)[0] == f"memory:{ids[0]}"
    await knowing.press("3")
    await knowing.until(lambda: knowing.app.focused is knowing.memory, "the pane")
    knowing.memory.move_cursor(f"memory:{ids[1]}")
    await knowing.press("p")
    await knowing.until(lambda: any(row.mark.text == "◆" for row in knowing.memory.rows), "the pin")
    await knowing.press("f")
    await knowing.until(lambda: in_mind(knowing)[0] == f"memory:{ids[1]}", "the focus")
    knowing.memory.move_cursor(f"memory:{ids[2]}")
    await knowing.press("E")
    await knowing.until(lambda: len(in_mind(knowing)) == 2, "one evicted")
    written = [event async for event in knowing.engine.events(0, stream="workspace@memory", follow=False)]
    assert {event.actor for event in written[-3:]} == {"operator:" + knowing.app.context.settings.operator}


async def test_the_browser_finds_follows_links_shows_history_and_forgets(knowing: Flight) -> None:
    ids = await facts(knowing)
    link = {"source_memory_id": ids[1], "target_memory_id": ids[0], "link_type": "supports"}
    await write(knowing, "create_memory_link", **link)
    await knowing.press("M")
    await knowing.dialog(MemoryBrowser)
    await knowing.shows("create_venv took 4 s", "in w")
    await knowing.press("P")
    await knowing.shows("Memories", "recalled")
    await knowing.press("escape")
    await knowing.press("slash", *"proxy port", "enter")
    results = knowing.app.screen.query_one("#results", LinePane)
    await knowing.until(lambda: [row.key for row in results.rows][:1] == [ids[1]], "the proxy first")
    browser = knowing.app.screen
    assert isinstance(browser, MemoryBrowser)
    detail = browser.query_one("#detail", LinePane)
    await knowing.until(lambda: browser.detail and browser.detail.id == ids[1], "its detail")
    await knowing.shows("→ supports the index answers slowly", "history")
    await write(knowing, "update_memory", memory_id=ids[1], importance=6.0)
    await knowing.press("tab")
    detail.move_cursor(next(row.key for row in detail.rows if row.key.startswith("link:")))
    await knowing.press("enter")
    await knowing.until(lambda: browser.detail and browser.detail.id == ids[0], "the linked memory")
    await knowing.shows("← supports the proxy listens")
    await knowing.press("D")
    await knowing.dialog(ConfirmDialog)
    await knowing.press("y")
    await knowing.dialog(MemoryBrowser)
    await knowing.until(lambda: browser.detail is None, "it is gone")
    await knowing.press("escape")
    await knowing.no_dialog()


async def test_the_operator_says_of_what_was_found_whether_it_is_right(knowing: Flight) -> None:
    ids = await facts(knowing)
    await knowing.press("M")
    await knowing.dialog(MemoryBrowser)
    await knowing.shows("create_venv took 4 s", "in w")
    await knowing.press("plus")
    await knowing.says("look for something first")
    await knowing.press("slash", *"proxy port", "enter")
    browser = knowing.app.screen
    assert isinstance(browser, MemoryBrowser)
    await knowing.until(lambda: browser.detail and browser.detail.id == ids[1], "its detail")
    await knowing.shows("found by", "just now, relevance")
    await knowing.shows("words", "(proxy, port)")
    await knowing.press("plus")
    await knowing.shows("✓ m")
    await knowing.press("minus")
    await knowing.shows("✗ m")
    (judged,) = await knowing.engine.recall("list_judgements", {})
    assert (judged.query, judged.memory, judged.right) == ("proxy port", ids[1], False)
    assert judged.workflow == await work_begun(knowing)


async def test_a_memory_is_opened_from_the_pane_and_put_into_mind_from_the_browser(knowing: Flight) -> None:
    ids = await facts(knowing)
    await knowing.type("memory proxy")
    await knowing.dialog(MemoryBrowser)
    await knowing.shows("the proxy listens on port 3128", "never by the agent")
    await knowing.press("f")
    await knowing.shows("★ in focus")
    await knowing.press("escape")
    await knowing.no_dialog()
    await knowing.until(lambda: in_mind(knowing) == [f"memory:{ids[1]}"], "in mind")
    await knowing.press("escape", "3")
    knowing.memory.move_cursor(f"memory:{ids[1]}")
    await knowing.press("enter")
    await knowing.dialog(MemoryBrowser)
    await knowing.shows("importance 5.0")


async def test_words_of_the_bar_write_to_the_memory_of_the_present_work(knowing: Flight) -> None:
    await knowing.type("remember the index answers slowly before noon")
    await knowing.says("store_memory done")
    found = next(iter(await knowing.engine.recall("search", {"query": "slow index"}))).memory
    ident = found.id
    assert found.workflow == await work_begun(knowing)
    for line, said in (
        (f"pin {ident}", "change_working_memory done"),
        (f"focus {ident}", "focus_memory done"),
        (f"important {ident} 9", "update_memory done"),
        (f"unpin {ident}", "change_working_memory done"),
        (f"evict {ident}", "change_working_memory done"),
        (f"forget_memory {ident}", "forget_memories done"),
        (f"pin {ident}", "there is no memory"),
        ("workflow w1 paused for a while", "update_workflow_status done"),
    ):
        await knowing.type(line)
        await knowing.says(said)
        knowing.app.context.say("", "note")


@pytest.mark.parametrize("size", sizes((80, 24), (100, 30)))
async def test_the_browser_says_what_to_do_where_nothing_is_remembered(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with cockpit(tmp_path / "ws", size=size) as flight:
        await flight.press("M")
        await flight.dialog(MemoryBrowser)
        await flight.shows("This agent has no work yet")
        await flight.press("W")
        await flight.shows("No memory fits")


async def test_a_reasoner_shows_beliefs_and_with_its_key_again_working_memory(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="explorer", size=(140, 40)) as robot:
        await robot.press("3")
        await robot.until(lambda: robot.app.query_one("#beliefs", BeliefsPane).has_focus, "the beliefs")
        await robot.press("3")
        await robot.until(lambda: robot.app.query_one("#memory", WorkingMemory).has_focus, "the memory")
        assert not robot.app.query_one("#beliefs").is_on_screen
        await robot.press("3")
        await robot.until(lambda: robot.app.query_one("#beliefs", BeliefsPane).has_focus, "the beliefs again")


async def test_a_key_of_the_browser_has_memories_found_by_what_is_meant(
    knowing: Flight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path))
    await facts(knowing)
    await knowing.press("M")
    await knowing.dialog(MemoryBrowser)
    await knowing.press("slash", *"sluggish")
    await knowing.shows("by words alone; L finds what is meant")
    await knowing.press("enter", "L")
    await knowing.shows("minilm: ")
    assert knowing.engine.memory is not None
    assert await knowing.engine.memory.embedded(PATIENCE_S)
    await knowing.press("slash", *"ly slow")
    await knowing.shows(FACTS[0])
    monkeypatch.setattr(embedder_choice, "NEEDED", ("no_such_library",))
    await knowing.engine.memory.use_embedder(None)
    await knowing.press("enter", "L")
    await knowing.shows("pip install 'pilothouse[embed]'")
