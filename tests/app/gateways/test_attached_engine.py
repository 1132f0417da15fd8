"""The engine of another process, as a cockpit operates it: here engine and client are in one program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.commands.command_runner import run_command_in, run_line
from app.commands.headless import open_engine
from app.commands.rewind import rewind_command, rewind_parts, rewind_title
from app.commands.settings import PRESETS
from app.gateways.attached_engine import READ_ONLY, AttachedEngine
from app.gateways.engine_client import EngineClient, EngineLostError
from app.gateways.socket_server import EngineServer
from app.gateways.terminal_relay import RemoteTerminal
from engine.agent.shared import EngineConfig
from engine.agent.steering.rewind_preview import RewindError
from engine.api.engine import Engine
from engine.api.workspace_engine import EngineAwayError, WorkspaceEngine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.approvals import Policy
from engine.core.campaigns import AddItem
from engine.core.trust import FolderTrust
from tests.patience import PATIENCE_S

PILOT = "pilot-1"
WRITTEN = {"path": "a.txt", "content": "written"}


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


async def taken(engine: Engine, away: AttachedEngine) -> RemoteTerminal:
    """The shell, taken from afar."""
    assert (await away.submit(cmd.TakeShell(agent=PILOT))).ok
    await until(lambda: away.terminal(PILOT))
    terminal = away.terminal(PILOT)
    assert terminal is not None
    return terminal


async def test_a_shell_is_taken_from_afar_typed_into_recorded_and_handed_back(tmp_path: Path) -> None:
    async with attached(tmp_path) as (engine, _, away):
        terminal = await taken(engine, away)
        seen = bytearray()
        terminal.follow(seen.extend)
        terminal.resize(31, 99)
        terminal.write(b"stty size; read -s word; echo $((6*7)) $word > a.txt\r")
        await until(lambda: b"31 99" in seen)
        terminal.write(b"sesame\r")
        await until((tmp_path / "sandbox" / "a.txt").exists)
        assert (await away.submit(cmd.ReturnShell(agent=PILOT, note="all mended"))).ok
        await until(lambda: not terminal.open)
        assert (tmp_path / "sandbox" / "a.txt").read_text() == "42 sesame\n"
        await until(lambda: engine.terminal(PILOT) is None)
        await until(lambda: engine._agents[PILOT].state.handover)
        await engine._agents[PILOT].log.commit()
        typed = [str(ev.payload_of(event)) for event in await engine.store.last(99, PILOT)]
        assert not [text for text in typed if "sesame" in text]
        assert [text for text in typed if "stty size" in text]


async def test_a_shell_stays_open_without_its_cockpit_and_another_one_goes_on_in_it(tmp_path: Path) -> None:
    async with attached(tmp_path) as (engine, server, away):
        terminal = await taken(engine, away)
        seen = bytearray()
        terminal.follow(seen.extend)
        terminal.write(b"echo from=$((1+1))\r")
        await until(lambda: b"from=2" in seen)
        for task in list(server._connections):
            task.cancel()
        await until(lambda: not terminal.open)
        assert engine.terminal(PILOT) is not None
        other = await AttachedEngine.attach(tmp_path, away.config, operator="cy")
        assert other is not None
        await until(lambda: other.terminal(PILOT))
        again = other.terminal(PILOT)
        assert again is not None
        seen.clear()
        again.follow(seen.extend)
        again.write(b"echo again=$((2+2))\r")
        await until(lambda: b"again=4" in seen and b"from=2" in seen)
        again.write(b"exit\r")
        await until(lambda: not again.open)
        await other.close()


async def test_nobody_types_into_the_shell_of_an_agent_that_another_operator_holds(tmp_path: Path) -> None:
    async with attached(tmp_path) as (engine, server, away):
        terminal = await taken(engine, away)
        other = await AttachedEngine.attach(tmp_path, away.config, operator="cy")
        assert other is not None
        assert (await other.submit(cmd.TakeControl(agent=PILOT))).ok
        terminal.write(b"touch typed\r")
        await until(lambda: not terminal.open)
        assert server.refused["control"] == 1
        assert engine.terminal(PILOT) is not None
        assert not (tmp_path / "sandbox" / "typed").exists()
        await other.close()


async def test_who_only_watches_types_nothing_into_a_shell(tmp_path: Path) -> None:
    async with attached(tmp_path, watch=True) as (engine, _, away):
        assert (await engine.submit(cmd.TakeShell(agent=PILOT))).ok
        await until(lambda: away.terminal(PILOT))
        terminal = away.terminal(PILOT)
        assert terminal is not None
        terminal.write(b"touch typed\r")
        assert terminal.open
        client = await EngineClient.open(tmp_path, "bo", watch=True)
        assert client is not None
        wire = await client.carry("terminal", agent=PILOT)
        await wire.send({"typed": "dG91Y2ggdHlwZWQN"})
        while "error" not in (message := await wire.next()):
            pass
        assert message["error"]["code"] == "watching"
        with pytest.raises(EngineLostError):
            await wire.next()
        await client.close()
        await engine.submit(cmd.ReturnShell(agent=PILOT))
        await until(lambda: not terminal.open)
        assert not (tmp_path / "sandbox" / "typed").exists()


async def test_previews_from_afar_are_those_of_the_engine(tmp_path: Path) -> None:
    async with attached(tmp_path) as (engine, _, away):
        assert (await engine.submit(cmd.Believe(agent=PILOT, key="lamp", value="on"))).ok
        before = (await engine.view(PILOT)).version
        assert await away.time_travel.undo_offer(PILOT) == await engine.time_travel.undo_offer(PILOT)
        call = cmd.CallTool(agent=PILOT, tool="simple_coder", command="write", args=WRITTEN)
        assert (await engine.submit(call)).ok
        await until(lambda: engine._agents[PILOT].state.operator_actions == 1)
        await until(lambda: not engine._agents[PILOT].state.busy)
        there, here = away.time_travel, engine.time_travel
        for scope in ("both", "state", "files"):
            shown, own = await there.preview(PILOT, before, scope), await here.preview(PILOT, before, scope)
            assert rewind_parts(shown) == rewind_parts(own)
            assert rewind_title(shown) == rewind_title(own)
            assert rewind_command(shown) == rewind_command(own)
        with pytest.raises(RewindError, match="no event"):
            await there.preview(PILOT, 10_000)
        fork = cmd.ForkAgent(agent=PILOT, to=before, name="fork-1")
        assert (await away.submit(fork)).ok
        assert await there.files_between(PILOT, "fork-1") == await here.files_between(PILOT, "fork-1")
        assert await there.adopt_preview(PILOT, "fork-1") == await here.adopt_preview(PILOT, "fork-1")
        assert await there.changed_files("none", "nothing") == await here.changed_files("none", "nothing")
        with pytest.raises(RewindError, match="no fork"):
            await there.adopt_preview(PILOT, PILOT)


async def test_tools_of_the_engine_are_known_and_agents_are_made_by_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "robot.asl").write_text("!go. +!go <- .print(hello).")
    monkeypatch.chdir(tmp_path / "elsewhere")
    async with attached(tmp_path) as (engine, _, away):
        monkeypatch.chdir(tmp_path)
        await away.look_at_tools()
        assert away.registry.schemas() == engine.registry.schemas()
        code, answer, _ = await run_command_in(away, "agent_create asl_agent robot file=robot.asl")
        assert (code, answer["agent"]) == (0, "robot")
        assert "robot" in engine.agents
        code, answer, text = await run_command_in(away, "agent_create bdi_agent robot", dry=True)
        assert (code, "robot" in text) == (2, True)
        code, _, text = await run_command_in(away, "agent_delete robot", dry=True)
        assert (code, "is stopped and deleted" in text) == (0, True)
        with pytest.raises(EngineAwayError, match="agent_create"):
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
