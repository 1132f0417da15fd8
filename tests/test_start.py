"""A start imports what every session needs, and nothing that only some sessions need."""

from __future__ import annotations

import subprocess
import sys

import pytest

RARELY_NEEDED = frozenset(
    {
        "engine.agent.reasoner.reasoner",
        "engine.bdi.agent",
        "engine.bdi.parser",
        "engine.crew.builder.builder",
        "engine.crew.crew",
        "engine.crew.ontology.kinds",
        "engine.crew.selection",
        "engine.improve.agent_specification",
        "engine.improve.mastermind",
        "engine.inquiry.record",
        "engine.models.client",
        "engine.models.stream",
        "engine.planning.pgp.requests",
        "engine.planning.thinkers.claude",
        "engine.tools.mcp.server",
        "engine.tools.mcp.settings",
        "engine.core.store.postgres",
        "engine.memory.postgres",
        "anthropic",
        "asyncpg",
        "mcp",
        "mcp_types",
        "ray",
    }
)
"""Models, the reasoner, generation of plans, crews, improvement, MCP servers and PostgreSQL."""
NOT_OF_THE_COCKPIT = RARELY_NEEDED | {
    "app.commands.crew_runner",
    "app.commands.improve_runner",
    "widgets.dialogs.campaign",
    "widgets.dialogs.fleet",
    "widgets.dialogs.session",
}
NOT_OF_ONE_COMMAND = RARELY_NEEDED | {"textual", "rich", "app.cockpit.app", "app.commands.crew_runner"}


@pytest.mark.parametrize(
    ("module", "closed"),
    [
        ("app.cockpit.app", NOT_OF_THE_COCKPIT),
        ("app.commands.command_runner", NOT_OF_ONE_COMMAND),
        ("app.cli.fleet", NOT_OF_ONE_COMMAND | {"pydantic"}),
    ],
    ids=["cockpit", "do status", "fleet"],
)
def test_a_start_imports_nothing_that_only_some_sessions_need(module: str, closed: frozenset[str]) -> None:
    script = f"import sys, {module}; print(*sorted({set(closed)!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not done.stdout.split()


def test_agents_and_memory_in_files_import_nothing_of_postgresql() -> None:
    script = "import sys, engine.api.engine, engine.memory.open_memory; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if "postgres" in name or name == "asyncpg"]
