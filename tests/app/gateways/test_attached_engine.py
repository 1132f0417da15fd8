"""The engine of another process, as a cockpit operates it: here engine and client are in one program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.commands.command_runner import run_line
from app.commands.headless import open_engine
from app.commands.settings import PRESETS
from app.gateways.attached_engine import READ_ONLY, SHELL, AttachedEngine
from app.gateways.socket_server import EngineServer
from engine.agent.shared import EngineConfig
from engine.agent.steering.rewind_preview import RewindError
from engine.api.engine import Engine
from engine.api.workspace_engine import EngineAwayError, WorkspaceEngine
from engine.core import commands as cmd
from engine.core.approvals import Policy
from engine.core.campaigns import AddItem
from engine.core.trust import FolderTrust
from tests.patience import PATIENCE_S

PILOT = "pilot-1"


@asynccontextmanager
async def attached(
    workspace: Path, *, watch: bool = False, approvals: Policy | None = None
) -> AsyncIterator[tuple[Engine, EngineServer, AttachedEngine]]:
    """An engine with an agent, and another program's view of it."""
    config = EngineConfig(approvals=approvals or Policy())
    async with open_engine(workspace, config) as engine:
        server = EngineServer(engine, "serve")
        await server.begin()
        await engine.submit(cmd.CreateAgent(agent=PILOT))
        away = await AttachedEngine.attach(workspace, config, operator="bo", watch=watch)
        assert away is not None
        try:
            yield engine, server, away
        finally:
            await away.close()
            await server.close()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)


async def test_it_shows_what_the_engine_has(tmp_path: Path) -> None:
    async with attached(tmp_path) as (engine, _, away):
        typed: WorkspaceEngine = away
        assert typed.agents == engine.agents == (PILOT,)
        assert await away.view(PILOT) == await engine.view(PILOT)
        assert away.link.startswith("attached to serve ")
        assert not away.lost
        assert (away.sandbox().summary, away.health) == (engine.sandbox().summary, engine.health)
        assert await away.waiting(PILOT) == await engine.waiting(PILOT)
        away.budgets(PILOT)
        await until(lambda: away.budgets(PILOT))
        assert [each.budget for each in away.budgets(PILOT)] == [
            each.budget for each in engine.budgets(PILOT)
        ]
        assert {client["operator"] for client in away.clients} == {"bo"}


async def test_commands_are_carried_out_in_the_operators_name_and_new_agents_are_there(
    tmp_path: Path,
) -> None:
    async with attached(tmp_path) as (engine, _, away):
        assert (await away.submit(cmd.CreateAgent(agent="pilot-2"))).ok
        assert away.agents == (PILOT, "pilot-2")
        assert (await away.submit(cmd.AddNote(agent="pilot-2", text="seen"))).ok
        (event,) = await engine.store.last(1, "pilot-2")
        assert event.actor == "operator:bo"
        assert (await away.view("pilot-2")).version == event.version
        assert not (await away.submit(cmd.AddNote(agent="nobody", text="lost"))).ok


async def test_events_go_on_without_a_gap_where_connections_are_lost(tmp_path: Path) -> None:
    async with attached(tmp_path) as (engine, server, away):
        seen: list[int] = []
        async with asyncio.timeout(PATIENCE_S):
            async for event in away.events(0):
                seen.append(event.seq)
                if event.seq == 20:
                    for task in list(server._connections):
                        task.cancel()
                    for _ in range(20):
                        await engine.submit(cmd.AddNote(agent=PILOT, text="while nobody looked"))
                if event.seq < 60:
                    await engine.submit(cmd.AddNote(agent=PILOT, text="more"))
                else:
                    break
        assert seen == list(range(1, len(seen) + 1))
        await until(lambda: not away.lost)


async def test_a_lost_engine_is_said_what_is_durable_stays_and_commands_are_refused(tmp_path: Path) -> None:
    async with attached(tmp_path) as (engine, server, away):
        head = await engine.head()
        await server.close("it was told to end")
        await until(lambda: away.lost)
        assert away.link.startswith("connection lost")
        receipt = await away.submit(cmd.AddNote(agent=PILOT, text="lost"))
        assert not receipt.ok
        assert "cannot be reached" in receipt.message
        assert (await away.view(PILOT)).agent_id == PILOT
        assert await away.head() == head
        with pytest.raises(EngineAwayError):
            await away.inbox()
        again = EngineServer(engine, "serve")
        await again.begin()
        await until(lambda: not away.lost)
        assert (await away.submit(cmd.AddNote(agent=PILOT, text="back"))).ok
        await again.close()


async def test_an_approval_is_answered_once_and_who_was_late_is_told(tmp_path: Path) -> None:
    async with attached(tmp_path, approvals=PRESETS["ask-changes"]) as (engine, _, away):
        await engine.submit(cmd.AdoptGoal(agent=PILOT, text="create a Python project named 'demo'"))
        await engine.submit(cmd.Run(agent=PILOT))
        async with asyncio.timeout(PATIENCE_S):
            while not (needs := await away.inbox()):
                await asyncio.sleep(0.02)
        assert needs == await engine.inbox()
        answer = cmd.AnswerApproval(agent=PILOT, action=needs[0].thing, allow=True)
        assert (await away.submit(answer)).ok
        late = await engine.submit(answer.model_copy(update={"allow": False}))
        assert not late.ok
        assert "already" in late.message


async def test_what_cannot_be_done_from_afar_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async with attached(tmp_path) as (_, _, away):
        assert (await away.submit(cmd.TakeShell(agent=PILOT))).message == SHELL
        with pytest.raises(RewindError, match="pilothouse do"):
            await away.time_travel.preview(PILOT, 1)
        with pytest.raises(EngineAwayError, match="pilothouse do"):
            await away.agent_service()


async def test_who_only_watches_sends_nothing(tmp_path: Path) -> None:
    async with attached(tmp_path, watch=True) as (engine, _, away):
        head = await engine.head()
        receipt = await away.submit(cmd.AddNote(agent=PILOT, text="never"))
        assert (receipt.ok, receipt.message) == (False, READ_ONLY)
        assert await engine.head() == head


async def test_who_only_watches_trusts_no_folder(tmp_path: Path) -> None:
    async with attached(tmp_path, watch=True) as (_, _, away):
        trust = away.trust = FolderTrust(tmp_path, tmp_path / "home")
        line = f"trust {trust.digest}"
        code, _, text = await run_line(away, line, agent="", dry=False, quiet=True, operator="bo")
        assert (code, text) == (2, "who only watches trusts nothing")


async def test_without_an_engine_there_is_nothing_to_attach_to(tmp_path: Path) -> None:
    assert await AttachedEngine.attach(tmp_path, EngineConfig()) is None


async def test_the_crew_and_mastermind_are_followed_by_their_streams(tmp_path: Path) -> None:
    async with attached(tmp_path) as (engine, _, away):
        mastermind, crew = await away.mastermind(), await away.crew()
        await (await engine.mastermind()).carry_out(
            AddItem(target="tests", suggestion="make tests faster"), "ann"
        )
        await engine.crew()
        head = await engine.head()
        async with asyncio.timeout(PATIENCE_S):
            async for event in away.events(0):
                if event.seq >= head:
                    break
        assert mastermind.state.items == (await engine.mastermind()).state.items
        assert crew.state.handoffs == {}
