"""What only one sort of selection graph has: a file that can be lost, and a script with parameters."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.selection import (
    Edge,
    GraphUnavailable,
    Neo4jGraph,
    Node,
    Position,
    Signal,
    SqliteGraph,
    schema_cypher,
    schema_parameters,
)
from tests.selection.conftest import PASSWORD, open_bolt
from tests.selection.worked_examples import NODES, fill


async def test_a_graph_is_there_again_and_a_lost_one_begins_at_nothing(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    for spoil in (None, b"no database at all" * 100, "format"):
        if isinstance(spoil, bytes):
            path.write_bytes(spoil)
        elif spoil:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("update about set value = '0' where key = 'format'")
                connection.commit()
        graph = await SqliteGraph.open(path)
        assert (await graph.nodes(), await graph.position()) == ((), Position())
        await fill(graph)
        await graph.note_position(Position(3, "cd"))
        await graph.close()
        await graph.close()
        graph = await SqliteGraph.open(path)
        assert len(await graph.nodes()) == len(NODES)
        assert await graph.position() == Position(3, "cd")
        await graph.close()
    graph = await SqliteGraph.open(path)
    await graph.clear()
    assert (await graph.nodes(), await graph.edges(), await graph.position()) == ((), (), Position())
    await graph.close()
    with pytest.raises(GraphUnavailable, match="closed"):
        await graph.nodes()
    with pytest.raises(GraphUnavailable, match="could not be used"):
        await SqliteGraph.open(tmp_path / "nowhere" / "graph.db")


async def test_a_cut_off_trial_leaves_nothing_open_and_others_wait_for_it(tmp_path: Path) -> None:
    graph = await SqliteGraph.open(tmp_path / "graph.db")
    inside = asyncio.Event()

    async def try_out() -> None:
        async with graph.trial() as trial:
            await trial.upsert(NODES[0])
            inside.set()
            await asyncio.Event().wait()

    trying = asyncio.create_task(try_out())
    await inside.wait()
    assert await graph.nodes() == ()
    writing = asyncio.create_task(graph.upsert(NODES[1]))
    await asyncio.sleep(0)
    assert not writing.done()
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    await writing
    assert await graph.nodes() == (NODES[1],)
    await graph.close()


def test_the_script_for_neo4j_names_nothing_but_parameters() -> None:
    """Line 53, the graph's half: the script is the same for every agent."""
    script = schema_cypher()
    assert set(re.findall(r"\$(\w+)", script)) == {"node", "chains", "good_for"}
    assert not re.search(r"['\"\\]", script)
    odd = Node("odd", 'Devil\'s "Advocate" \n', "role", ("why",))
    edges = [Edge("odd", "CHAINS_TO", "b", 0.5), Edge("odd", "GOOD_FOR", "ill-defined", 0.5)]
    given = schema_parameters(odd, edges)
    assert given["node"]["name"] == odd.name
    assert given["chains"] == [{"src": "odd", "dst": "b", "weight": 0.5}]
    assert given["good_for"] == [{"src": "odd", "dst": "ill-defined", "confidence": 0.5}]


@pytest.mark.bolt
async def test_the_script_makes_what_the_graph_makes_however_often(bolt: str) -> None:
    graph = await open_bolt(bolt)
    odd = Node("odd", 'Devil\'s "Advocate" \\ \n', "role", ("why",), ("ill-defined",))
    edges = [Edge("odd", "CHAINS_TO", "b", 0.5), Edge("odd", "GOOD_FOR", "ill-defined", 0.5)]
    given = schema_parameters(odd, edges)
    for _ in range(2):
        for statement in filter(str.strip, schema_cypher().split(";")):
            await graph._run([(statement, given)], writes=True)
    assert await graph.nodes() == (odd,)
    assert list(await graph.edges()) == sorted(edges)
    assert (await graph.select(Signal(("why",), ("Ill_Defined",)))).rows[0].score == 0.8
    await graph.close()


@pytest.mark.bolt
async def test_a_server_that_refuses_is_said_without_the_password(bolt: str) -> None:
    for address, password in ((bolt, "wrong-one"), ("bolt://127.0.0.1:1", PASSWORD)):
        with pytest.raises(GraphUnavailable, match="could not be used") as caught:
            await Neo4jGraph.open(address, user="root", password=password, database="graph")
        assert password not in str(caught.value)


async def test_without_the_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "neo4j", None)
    with pytest.raises(GraphUnavailable, match=r"pilothouse\[neo4j\]"):
        await Neo4jGraph.open("bolt://127.0.0.1:1", user="a", password="b")
