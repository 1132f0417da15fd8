"""Creating and deleting agents: what was typed, what is understood, what is left when it is refused."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from engine.agent.live_agents import AGENT_TYPES
from engine.core import commands as cmd
from engine.core.agents import RUN_TYPES, Mode
from engine.core.journal import of_agent
from engine.improve.agent_creation import RemovalError
from engine.improve.agent_specification import Specification, settings_in, specify
from engine.improve.agent_types import TYPES, CheckContext, CreationError, type_of
from engine.planning.library.plan_library import PlanLibrary
from tests.engine.agent.engine_flight import act
from tests.engine.improve.agents_flight import desk_flight
from tests.patience import PATIENCE_S

LIBRARY = PlanLibrary.load(None, None)


def specified(argument: str, *agents: str) -> Specification:
    return specify(argument, CheckContext(agents=agents), LIBRARY, taken=agents)


def refused(argument: str, *agents: str) -> str:
    with pytest.raises(CreationError) as told:
        specified(argument, *agents)
    message = str(told.value)
    assert message.isprintable()
    assert len(message) < 1_000
    return message


def test_the_table_has_the_types_of_the_engine_but_for_those_of_handoffs() -> None:
    assert {kind.name for kind in TYPES} == set(AGENT_TYPES) - set(RUN_TYPES)


# ------------------------------------------------------------------ what was typed


@pytest.mark.parametrize("config", ['{"style":"plan"}', '{ "budget": {"usd": 2}, "stuck": "hold" }'])
def test_json_is_the_same_with_and_without_single_quotes(config: str) -> None:
    """Behaviour 7."""
    bare, quoted = specified(f"bdi_agent i {config}"), specified(f"bdi_agent i '{config}'")
    assert bare == quoted
    assert bare.config == json.loads(config)


def test_extra_blanks_count_for_nothing() -> None:
    """Behaviour 8."""
    said = specified("  bdi_agent \t  i   list   the files  ")
    assert (said.kind.name, said.id) == ("bdi_agent", "i")
    assert said.description == "list   the files"


@pytest.mark.parametrize(
    "ident",
    [
        *("../x", "x/y", "", "X", "1x", "-x", "x" * 33, "é", "\x1b[2J", "x\0", "workspace", "all", "a.b"),
        *("\u202eevil", "To", "AND", *sorted(cmd.STOP_WORDS)),
    ],
)
def test_an_id_outside_the_pattern_is_refused_before_any_effect(ident: str) -> None:
    """Behaviour 9."""
    assert refused(f"bdi_agent {ident} list the files" if ident else "bdi_agent  ")


def test_there_are_24_stop_words() -> None:
    """Behaviour 9."""
    assert len(cmd.STOP_WORDS) == 24


@pytest.mark.parametrize("text", ["[]", "[1]", "'[{}]'", ' [ "a" ] '])
def test_a_json_list_is_refused(text: str) -> None:
    """Behaviour 10."""
    assert "not a list" in refused(f"bdi_agent i {text}")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a"',
        '\'{"a":1}',
        "{'style': 'plan'}",
        '{"style": "plan"} and more',
        '{"style": "plan", "style": "decide"}',
        '{"budget": {"usd": 1, "usd": 2}}',
        '{"budget": NaN}',
        '{"n":' + "9" * 5_000 + "}",
        "[" * 5_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        "[{",
        '"{',
    ],
)
def test_what_begins_like_json_and_is_none_is_refused_with_a_tip(text: str) -> None:
    message = refused(f"bdi_agent i {text}")
    assert "looks like JSON and is not" in message
    assert "double quotes" in message


def test_huge_and_odd_settings_are_refused_quickly() -> None:
    began = time.process_time()
    assert "at most" in refused("bdi_agent i {" + '"a":1,' * 400_000 + "}")
    assert "at most" in refused("bdi_agent i " + "word " * 2_000)
    assert "has no setting" in refused('bdi_agent i {"__class__": {"a": 1}}')
    assert "did you mean budget" in refused("bdi_agent i budgt=3")
    assert "given twice" in refused("bdi_agent i style=plan style=plan")
    assert "a value already" in refused("bdi_agent i budget=1 budget.usd=2")
    for text in ("a" * 3_900, " , " * 1_300, "x='" * 1_300, "a=" * 1_900, "a=b " * 900 + "c"):
        with suppress(CreationError):
            specified(f"bdi_agent i {text}")
    assert time.process_time() - began < PATIENCE_S


@pytest.mark.parametrize(
    ("typed", "config", "words"),
    [
        ("style=plan budget.usd=2", {"style": "plan", "budget": {"usd": 2}}, ""),
        ("description='a helper' core=true", {"description": "a helper", "core": True}, ""),
        ("", {}, ""),
        ("x=1 and then y=2", {"x": 1}, "and then y=2"),
        ("list the files", {}, "list the files"),
    ],
)
def test_settings_as_words(typed: str, config: dict[str, Any], words: str) -> None:
    assert settings_in(typed) == (config, words)


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("", "an agent type is missing"),
        ("bdi_agent", "an agent id is missing"),
        ("bdi_agent i budget.usd=-1", "budget.usd"),
        ("bdi_agent i budget.gold=1", "no kind of budget"),
        ("bdi_agent i style=fast", "style: one of plan, decide"),
        ("bdi_agent i parent=nobody", "there is no agent 'nobody'"),
        ('bdi_agent i {"sandbox": {"network": "on"}}', "more than the workspace allows"),
        ('bdi_agent i {"sandbox": {"programs": ["rm"]}}', "more than the workspace allows"),
        ('bdi_agent i {"approvals": "never"}', "no preset"),
        ('bdi_agent i {"stuck": "panic"}', "stuck"),
        ('bdi_agent i {"metacognition": {"x": 1}}', "metacognition"),
        ('bdi_agent i {"goal": ""}', "a goal is a text"),
        ('bdi_agent i {"goals": [1]}', "a goal is a text"),
        ("bdi_agent i goals=" + json.dumps(["x"] * 21).replace(" ", ""), "too many"),
        ("asl_agent i", "needs 'program'"),
        ("asl_agent i program=!!", "program.asl:1:1"),
        ('asl_agent i {"program": "!a. +!a.", "goal": "Not A Goal"}', "no goal of an AgentSpeak(L) agent"),
        ('asl_agent i {"program": "!a. +!a.", "world": "mars"}', "there is no world"),
        ("bdi_agent boss list the files", "exists already"),
        ("bdi_agent i list \0the\x1b[2J files", "2 control characters"),
        ("bdi_agent list the files", "'list' begins what it is to do"),
    ],
)
def test_wrong_input_is_one_clear_line(argument: str, told: str) -> None:
    assert told in refused(argument, "boss")


@pytest.mark.parametrize(
    ("typed", "goals", "description"),
    [
        ("budget.usd=2 parent=boss run the tests", ("run the tests",), "run the tests"),
        ("second pair of hands", (), "second pair of hands"),
        ("goal='run the tests' Make no mistake", ("run the tests",), "Make no mistake"),
        ("description=tester List the files", ("List the files",), "tester"),
        ("list of 'a=b' with a budget of $2", ("list of 'a=b' with a budget of $2",), None),
    ],
)
def test_words_behind_settings_are_a_description_or_a_goal(
    typed: str, goals: tuple[str, ...], description: str | None
) -> None:
    said = specify(f"bdi_agent i {typed}", CheckContext(agents=("boss",)), LIBRARY)
    assert said.goals == goals
    assert said.description == (goals[0] if description is None else description)


# ------------------------------------------------------------------ real agents


async def test_an_agent_of_settings_and_words_works(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (flight, desk):
        await desk.create(desk.understand("bdi_agent boss budget.usd=5"))
        words = "make the directory src"
        said = desk.understand(f"bdi  maker parent=boss budget.usd=2  {words}")
        assert f"goal: {words}" in said.lines
        assert flight.engine.agents == ("boss",)
        made = await desk.create(said)
        state = await flight.state("maker")
        assert (state.mode, made.data["goals"], state.config.parent) == (Mode.PAUSED, ("g1",), "boss")
        assert state.description == words
        (mine, *_), *_ = [one.lines for one in flight.engine.budgets("boss") if one.budget == "agent boss"]
        assert (mine.limit, mine.reserved) == (5, 2)
        with pytest.raises(CreationError, match="budget of"):
            await desk.create(desk.understand("bdi_agent greedy parent=boss budget.usd=4 list the files"))
        assert flight.engine.agents == ("boss", "maker")
        await flight.do(cmd.Run, agent="maker")
        await flight.until(lambda s: not s.open_goals, "maker")
        assert (flight.sandbox / "src").is_dir()
        state = (await flight.engine.mastermind()).state
        assert [one.text.split(",")[0] for one in state.log if "created" in one.text] == [
            "agent boss created",
            "agent maker created",
        ]


@pytest.mark.parametrize(
    "wanted", ["backup_agent", "bdi_agnt", "", "\u202e\x1b[2J", "../../bdi_agent", "a" * 10_000]
)
async def test_an_unknown_type_lists_the_types_and_leaves_nothing(tmp_path: Path, wanted: str) -> None:
    """Behaviour 71."""
    async with desk_flight(tmp_path) as (flight, desk):
        before = files_of(tmp_path)
        with pytest.raises(CreationError) as told:
            desk.understand(f"{wanted or '?'} pilot list the files")
        assert "bdi_agent, asl_agent" in str(told.value)
        assert str(told.value).isprintable()
        receipt = await flight.submit(cmd.CreateAgent, agent_type=wanted)
        assert "types: bdi_agent, asl_agent" in receipt.message
        assert desk.host.agents == ()
        assert files_of(tmp_path) == before
        assert not any(map(of_agent, await flight.engine.store.streams()))


def files_of(workspace: Path) -> set[str]:
    return {
        str(path) for path in workspace.rglob("*") if not path.name.startswith(("journal.db", "memory.db"))
    }


async def test_a_core_agent_is_not_deleted(tmp_path: Path) -> None:
    """Behaviour 72."""
    async with desk_flight(tmp_path) as (flight, desk):
        await desk.create(desk.understand('bdi_agent heart {"core": true}'))
        for attempt in (desk.describe_removal("heart"), desk.remove("heart")):
            with pytest.raises(RemovalError, match="heart is a core agent, which the workspace needs"):
                await attempt
        assert "is a core agent" in await flight.refused(cmd.DeleteAgent, agent="heart")
        assert (await flight.state("heart")).mode is Mode.PAUSED
        with pytest.raises(RemovalError, match="there is no agent"):
            await desk.remove("nobody\x1b[2J")
        with pytest.raises(RemovalError, match="there is no agent"):
            await desk.remove("workspace")


async def test_a_running_agent_is_deleted_with_its_processes_and_its_history_stays(tmp_path: Path) -> None:
    """Behaviour 72."""
    async with desk_flight(tmp_path) as (flight, desk):
        await desk.create(desk.understand("bdi_agent pilot"))
        write = "import time; open('{0}', 'w').write('" + str(tmp_path) + "'); time.sleep(600)"
        job = f'python -c "{write.format("job")}"'
        await flight.do(cmd.CallTool, command="start", args={"command": job})
        (step,) = await flight.plan(act("run", command=["python", "-c", write.format("plan")]))
        await flight.do(cmd.Run)
        await flight.until(lambda s: s.acting and s.running_jobs)
        for name in ("job", "plan"):
            await written(flight.sandbox / name)
        assert running(str(tmp_path)) >= 2
        assert (await flight.state()).action is not None
        lines = await desk.describe_removal("pilot")
        assert any("cut off" in line for line in lines)
        assert any("background job" in line for line in lines)
        gone = await desk.remove("pilot")
        assert gone.data["ended"] >= 2
        assert gone.data["alive"] == 0
        assert flight.engine.agents == ()
        assert running(str(tmp_path)) == 0
        state = await flight.engine.view("pilot")
        assert state.deleted
        assert not state.running_jobs
        assert not state.acting
        assert state.find_step(step) is not None
        with pytest.raises(RemovalError, match="was deleted before; its history stays"):
            await desk.remove("pilot")
        with pytest.raises(CreationError, match="history bears the name"):
            desk.understand("bdi_agent pilot")
        # Its files are nobody's: another agent works on them at once.
        await desk.create(desk.understand("bdi_agent next make the directory plan2"))
        await flight.do(cmd.Run, agent="next")
        await flight.until(lambda s: not s.open_goals, "next")


async def written(path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not (path.exists() and path.read_text()):
            await asyncio.sleep(0.01)


def running(words: str) -> int:
    """How many programs of this machine have these words in their command and sleep."""
    found = 0
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            line = (process / "cmdline").read_bytes() if process.name.isdigit() else b""
            found += words.encode() in line and b"time.sleep(600)" in line
    return found


async def test_an_asl_agent_of_json_runs_its_program(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (flight, desk):
        config = {"program": "+!greet(X) <- +greeted(X).", "goal": "greet(you)"}
        said = desk.understand(f"asl robot '{json.dumps(config)}'")
        assert said.goals == ("greet(you)",)
        await desk.create(said)
        await flight.do(cmd.Run, agent="robot")
        state = await flight.until(lambda s: not s.open_goals, "robot")
        assert any("greeted(you)" in one.text for one in state.held_beliefs.values())


@pytest.mark.parametrize("kind", ["operator", "collaborative", "pipeline", "guided", "role"])
def test_a_type_that_only_skills_have_is_answered_by_what_to_type(kind: str) -> None:
    with pytest.raises(CreationError, match=r"build FOLDER( --type \w+)?") as refused:
        type_of(kind)
    assert (f"--type {kind}" in str(refused.value)) is (kind != "role")
