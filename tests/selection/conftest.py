"""A graph of each sort, closed however the test ends, and a server that speaks Bolt if one is installed."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from engine.selection import FrameworkGraph, MemoryGraph, Neo4jGraph, SqliteGraph

PASSWORD = "only-for-tests"


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def bolt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a graph server; started once, as it takes seconds."""
    missing = [name for name in ("neo4j", "arcadedb_embedded") if importlib.util.find_spec(name) is None]
    if missing:
        said = f"NOT TESTED OVER BOLT: {', '.join(missing)} missing; pip install -e '.[bolt]'"
        warnings.warn(said, pytest.PytestWarning, stacklevel=1)  # a skip alone is a number in the summary
        pytest.skip(said)
    import arcadedb_embedded

    port, place = _free_port(), tmp_path_factory.mktemp("bolt")
    quiet = place / "logging.properties"
    quiet.write_text("handlers =\n")  # else it writes a log into the working directory
    server = arcadedb_embedded.ArcadeDBServer(
        str(place),
        root_password=PASSWORD,
        config={
            "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "bolt_port": port,
            "http_port": _free_port(),
        },
        jvm_kwargs={
            "heap_size": "512m",
            "jvm_args": f"-Djava.util.logging.config.file={quiet} -XX:ErrorFile={place}/hs_err.log",
        },
    )
    server.start()
    try:
        server.create_database("graph")
        yield f"bolt://127.0.0.1:{port}"
    finally:
        server.stop()


async def open_bolt(address: str) -> Neo4jGraph:
    """The graph on the server, emptied."""
    graph = await Neo4jGraph.open(address, user="root", password=PASSWORD, database="graph")
    await graph._run([("MATCH (n) DETACH DELETE n", {})], writes=True)
    return graph


SORTS = ["memory", "sqlite", pytest.param("bolt", marks=pytest.mark.bolt)]


@pytest.fixture(params=SORTS)
async def graph(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FrameworkGraph]:
    opened: FrameworkGraph
    if request.param == "memory":
        opened = MemoryGraph()
    elif request.param == "sqlite":
        opened = await SqliteGraph.open(tmp_path / "graph.db")
    else:
        opened = await open_bolt(request.getfixturevalue("bolt"))
    yield opened
    await opened.close()
