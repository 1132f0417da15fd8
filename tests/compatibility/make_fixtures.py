"""Makes the fixtures of one version: workspaces, exported sessions and settings as that version wrote them.

It is run by hand, with the version that the fixtures are to be of and never with a later one:

    python -m tests.compatibility.make_fixtures tests/compatibility/v0_1

The workspaces are made below `/tmp/pilothouse-fixture`, so that no path of the machine gets into them; an
archive that holds one is not kept. Beside every archive stands a JSON file with what has to come out of it in
every later version (`summaries.py` says what that is): heads and events of the streams, states at the end and
digests of the states on the way. Left out of the archives is what a workspace makes again by itself.

To see from where the program comes, it is best run from a copy of the source below `/tmp/pilothouse-fixture`
as well, since a journal may name the place of what was shipped with the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import os
import platform
import re
import shutil
import sys
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from app.cli.examples import copy_example
from app.cli.main import main
from app.commands.command_runner import run_command_in
from app.commands.settings import Settings
from engine.api.engine import Engine
from engine.core.agents import Run
from engine.core.ports import Ports
from engine.core.state import AgentState
from engine.core.store.sqlite import SqliteJournal
from tests.compatibility.reading import expected_of, settings_expected
from tests.engine.improve.running.words import lay, plug
from tests.messages_server import MessagesServer, Reply, object_call, plan_call
from tests.messages_server.server import Seen

GROUND = Path("/tmp/pilothouse-fixture")
REBUILT = {"lock", "memory.db", "index.db", "graph.db", "history", "desk"}
"""What a workspace makes again: caches, locks, and what is of one terminal only."""
WRITE_AHEAD = ("journal.db-wal", "journal.db-shm")
"""They are empty in a workspace that was closed in good order."""
LEFT_OUT = {"__pycache__", ".pytest_cache", ".home", ".tmp"}
PATIENCE_S = 60.0
MODEL = "claude-opus-4-6"


class Ground:
    """An open workspace in which lines of the command bar are carried out."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def line(self, text: str, agent: str = "", *, code: int | None = 0) -> dict[str, Any]:
        """Carry a line out; it has to end with this exit code where one is given."""
        async with asyncio.timeout(PATIENCE_S):
            got, answer, said = await run_command_in(self.engine, text, agent=agent, quiet=True)
        print(f"  {agent:>8} {text[:70]:<70} {got} {said.splitlines()[0][:90] if said else ''}", flush=True)
        if code is not None and got != code:
            raise SystemExit(f"'{text}' ended with {got} and not with {code}: {said}")
        return answer

    async def state(self, agent: str) -> AgentState:
        """An agent now."""
        return await self.engine.view(agent)

    async def until(self, agent: str, holds: Callable[[AgentState], object]) -> AgentState:
        """An agent as soon as something holds of it."""
        async with asyncio.timeout(20):
            while not holds(state := await self.state(agent)):
                await asyncio.sleep(0.01)
        return state


@contextlib.asynccontextmanager
async def opened(workspace: Path) -> AsyncIterator[Ground]:
    """A session of a workspace with its own settings."""
    engine = await Engine.open(workspace, config=Settings.load(workspace).engine_config())
    try:
        yield Ground(engine)
        await engine.kept()
    finally:
        await engine.close()


# ------------------------------------------------------------------ the workspaces


async def first_flight(workspace: Path) -> None:
    """The shipped mission without a screen, to its end."""
    status = await asyncio.to_thread(
        main, ["--workspace", str(workspace), "run", "--mission", "first-flight", "--quiet", "--json"]
    )
    assert status == 0


STEERED = """[approvals]
preset = "allow"

[[approvals.rules]]
answer = "ask"
command = "write"
paths = ["guarded/**"]
reason = "what is guarded is looked at first"

[budget]
actions = 500

[budget.agent]
actions = 60

[cockpit]
theme = "night-watch"
"""
RECIPE = """[[recipe]]
name = "changelog-entry"
says = ["(note|log) {text:quoted} in the changelog"]
summary = "Append a line to CHANGELOG.md."
example = "note 'faster start' in the changelog"

[[recipe.steps]]
tool = "simple_coder"
command = "append"
args = { path = "CHANGELOG.md", content = "- {text}\\n" }
"""


def _plan(*calls: tuple[str, dict[str, Any]]) -> str:
    return json.dumps(
        [
            {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": command, "args": args}}
            for command, args in calls
        ]
    )


async def steered(workspace: Path) -> None:
    """Everything that an operator does to agents without a model, and two reasoners; over three sessions."""
    workspace.mkdir(parents=True)
    (workspace / "pilothouse.toml").write_text(STEERED)
    (workspace / "recipes").mkdir()
    (workspace / "recipes/changelog.toml").write_text(RECIPE)
    (workspace / "thresholds.toml").write_text(
        "[recovery]\nmax_consecutive_errors = 2\n\n[metacognition]\nreflection_threshold = 5\n"
    )
    async with opened(workspace) as on:
        await _steer_pilot(on)
    async with opened(workspace) as on:
        await _go_back_and_fork(on)
    async with opened(workspace) as on:
        await _reason(on)
        await _leave_open(on)


async def _steer_pilot(on: Ground) -> None:
    line, pilot = on.line, "pilot-1"
    await line("agent_create bdi_agent pilot-1 first pair of hands")
    await line("believe weather fair")
    await line('believe berth {"pier": 4, "free": [true, null, 1.5]}')
    await line("goal !3 create a directory called notes and write 'hello' to notes/a.txt")
    await line("break tool write path=*.txt")
    await line("break error * once")
    await line("insert run python -c 'print(6 * 7)'", code=None)
    await line("run")
    state = await on.state(pilot)
    assert state.reached or any(point.stopped for point in state.points.values()), "it was not held"
    await line("step")
    await line("run")
    await on.until(pilot, lambda s: not s.open_goals)
    await line("pause")
    await line("goal note 'the fixtures are made' in the changelog")
    await line("remember the pier is closed on Mondays", code=None)
    await line("accept")
    await line("run")
    # A step fails: tried again, edited, settled by hand, and one is skipped.
    await line("pause")
    await line("goal list the files")
    fails = ("run", {"command": ["python", "-c", "raise SystemExit(3)"]})
    await line(
        "plan "
        + _plan(
            ("write", {"path": "src/one.py", "content": "ONE = 1\n"}),
            fails,
            ("write", {"path": "src/two.py", "content": "TWO = 2\n" * 600}),
            ("run", {"command": ["python", "-c", "print('x' * 200_000)"]}),
            fails,
            ("read", {"path": "src/none.py"}),
        )
    )
    await line("run")
    await line("run")  # the first one ends at the breakpoint on errors
    state = await on.until(pilot, lambda s: s.intervention)
    await line("! write guarded/mine.txt 'by the operator'", code=None)
    assert state.intervention is not None
    await line(f"result {state.intervention.step} it printed what was expected")
    await line("run")
    state = await on.until(pilot, lambda s: s.intervention)
    assert state.intervention is not None
    await line(f"edit {state.intervention.step} run python -c 'print(1)'", code=None)
    await line(f"retry {state.intervention.step}", code=None)
    await line("run", code=None)
    state = await on.until(pilot, lambda s: s.intervention or not s.open_goals)
    if state.intervention is not None:
        await line(f"skip {state.intervention.step} there is none")
        await line("run")
    await on.until(pilot, lambda s: not s.open_goals)
    await line("break off b1")
    # Approvals: denied, granted once, granted for good, and revoked.
    await line("pause")
    await line("goal list the files")
    await line(
        "plan "
        + _plan(*(("write", {"path": f"guarded/{name}.txt", "content": name}) for name in ("a", "b", "c")))
    )
    await line("run")
    await on.until(pilot, lambda s: s.approvals.question)
    await line("approve once")
    await on.until(pilot, lambda s: s.approvals.question and s.actions)
    await line("deny leave b alone")
    state = await on.until(pilot, lambda s: s.intervention or s.approvals.question)
    if state.intervention is not None:
        await line(f"skip {state.intervention.step} as it was denied")
        await line("run")
    await on.until(pilot, lambda s: s.approvals.question)
    await line("approve always write paths=guarded/c*")
    await on.until(pilot, lambda s: not s.open_goals)
    await line("allow session write paths=drafts/**")
    # Budgets: held by one, given more.
    await line("pause")
    await line("goal list the files")
    await line("plan " + _plan(*(("mkdir", {"path": f"drafts/{number}"}) for number in range(4))))
    await line("budget goal actions 2")
    await line("run", code=None)
    await on.until(pilot, lambda s: s.held_by is not None)
    await line("budget goal actions +5")
    await line("run", code=None)
    await on.until(pilot, lambda s: not s.open_goals)
    await line("budget agent actions 80 time 2h")


async def _go_back_and_fork(on: Ground) -> None:
    line = on.line
    state = await on.state("pilot-1")
    await line("rewind -4")
    await line("rewind -4 --yes")
    await line("believe weather foul")
    await line("undo")
    await line("redo")
    await line("forget berth")
    await line(f"wrong pilot-1:{state.version} it is only a fixture", code=None)
    await line("fork -2 pilot-2 with belief weather=storm")
    await line("goal write 'of the fork' to fork.txt", agent="pilot-2")
    await line("run", agent="pilot-2", code=None)
    await on.until("pilot-2", lambda s: not s.open_goals)
    await line("reflect", agent="pilot-1", code=None)
    await line("consolidate", agent="pilot-1", code=None)
    await line("outcomes")
    await line("agent_create bdi_agent gone for a moment")
    await line("agent_delete gone")


async def _reason(on: Ground) -> None:
    line = on.line
    await line("mission explorer")
    await line("break belief obstacle(_)", agent="robot", code=None)
    await line("break goal +!reach(_)", agent="robot", code=None)
    for _ in range(3):
        await line("step", agent="robot", code=None)
    await line("step over", agent="robot", code=None)
    for _ in range(12):
        state = await on.state("robot")
        if not state.open_goals:
            break
        await line("run", agent="robot", code=None)
    await line("mission explorer-generated")
    await on.engine.submit(Run(agent="robot-2"), operator="cli")  # the line would wait for its end
    state = await on.until("robot-2", lambda s: any(one.stage == "held" for one in s.generations.values()))
    held = next(one for one in state.generations.values() if one.stage == "held")
    await line(f"plans approve {held.id}", agent="robot-2")
    await on.until("robot-2", lambda s: s.loops > 20 or not s.has_work)
    await line("pause", agent="robot-2", code=None)


async def _leave_open(on: Ground) -> None:
    """Agents that wait when the workspace is closed: for a word, for a decision, at a breakpoint."""
    line = on.line
    for name in ("asks", "failed", "paused"):
        await line(f"agent_create bdi_agent {name}")
        await line("goal list the files", agent=name)
    await line("plan " + _plan(("write", {"path": "guarded/d.txt", "content": "d"})), agent="asks")
    await line("run", agent="asks", code=None)
    await on.until("asks", lambda s: s.approvals.question)
    await line("plan " + _plan(("read", {"path": "nowhere.txt"})), agent="failed")
    await line("run", agent="failed", code=None)
    await on.until("failed", lambda s: s.intervention)
    await line(
        "plan " + _plan(("mkdir", {"path": "one"}), ("mkdir", {"path": "two"}), ("mkdir", {"path": "three"})),
        agent="paused",
    )
    await line("subgoal g1 create a directory called below", agent="paused")
    await line("break", agent="paused", code=None)
    await line("run", agent="paused", code=None)


# ------------------------------------------------------------------ a crew with a model

WHAT = "Support answers four hours late"
WHO = "Forty small bakeries that we supply"
SUCCESS = "Every bakery has an answer within 30 minutes"
LARRY = (
    Reply(text="What goes wrong today?"),
    object_call("update_clarity", slot="what", text=WHAT, score=0.9),
    object_call("reply", text="Who waits, and since when do they notice?"),
    object_call("update_clarity", slot="who", text=WHO, score=0.9),
    object_call("update_clarity", slot="success", text=SUCCESS, score=0.9),
    Reply(text="Four hours late, forty bakeries, half an hour wanted: is that right?"),
)
PYRAMID = {
    "situation": "Forty bakeries ask us for help.",
    "complication": "They wait four hours.",
    "question": "How do they get an answer in 30 minutes?",
    "answer": "One person answers in the morning.",
    "reasons": [
        {"text": "most questions come before nine", "support": "assumption"},
        {"text": "answers repeat themselves", "support": "assumption"},
    ],
}
PARTS = "# Situation\nx\n# Complication\ny\n# Question\nz?\n# Answer\nw"
SCORES = {"problem": 24, "solution": 20, "business_case": 20, "people": 18}
SYNTHESIS = "[minto-pyramid] wants one person in the morning; [pws-validation] says go."


def _returns(output: str, **fields: Any) -> Reply:
    return object_call("return_result", output=output, **fields)


DEVIL = (
    object_call("escalate_to_operator", question="Is a person free in the morning?", options=["yes", "no"]),
    _returns(
        "Steelman: it is cheap.",
        data={
            "challenges": [
                {
                    "family": family,
                    "quote": "one person in the morning",
                    "challenge": "c",
                    "settles": "a count of a week",
                }
                for family in ("assumptions", "demand", "execution")
            ]
        },
    ),
)


def _turn(side: str, now: int) -> Reply:
    """A turn of a debate that answers the other side's first claim."""
    other, own = ("B1", "A1") if side == "A" else ("A1", "B1")
    data: dict[str, Any] = {"claims": [{"text": f"claim of {side} in round {now}"}]} if now < 2 else {}
    if now:
        data["restated"] = f"{other} says so"
        data["replies"] = [
            {"claim": other, "kind": "refute", "text": f"no, says {side} in round {now}"},
            {"claim": own, "kind": "defend", "text": "it stands"},
        ]
    return object_call("return_result", output="my turn", data=data)


def _judged() -> Reply:
    data = {"winner": "B", "confidence": 0.8, "decisive_claim_ids": ["B1"], "reasons": {"evidence": "x"}}
    return object_call("return_result", output="judged", data=data)


def _researches(said: str) -> Reply:
    if "The phase Clarify" in said:
        asked = [{"question": "why do they wait?", "success": "a cause with a number"}]
        return object_call("checkpoint", outputs={"questions": asked})
    return object_call("checkpoint", outputs={"evidence": []})


def _helm(seen: Seen) -> Reply:
    """What plans for an agent that is at the helm itself."""
    params = {
        "tool_id": "simple_coder",
        "command": "write",
        "args": {"path": "report.md", "content": "# Bakeries\n"},
    }
    return plan_call({"type": "EXECUTE_TOOL", "description": "write the report", "params": params})


def _script() -> Callable[[Seen], Reply]:
    says: dict[str, Reply | Iterable[Reply]] = {
        "Larry, the clarifier": iter(LARRY),
        "Minto pyramid": _returns(PARTS, data=PYRAMID, key_findings=["mornings count"]),
        "PWS validation": _returns(
            "Do it.",
            data={
                "pillars": {name: {"score": score, "evidence": ["told"]} for name, score in SCORES.items()}
            },
            confidence=0.7,
        ),
        "Synthesizer": _returns(SYNTHESIS),
        "The devil's advocate": iter(DEVIL),
        "Judge": _judged(),
    }

    def answer(seen: Seen) -> Reply:
        system = seen.body["system"]
        text = system if isinstance(system, str) else "\n".join(block["text"] for block in system)
        messages = json.dumps(seen.body["messages"], ensure_ascii=False)
        found = re.search(r"^You are ([^:\n]+): ", text, re.MULTILINE)
        name = found[1] if found is not None else ""
        side = next((side for side in ("Side A", "Side B", "Judge") if f"You are {side}" in text), "")
        if side == "Judge":
            return _judged()
        if side:
            now = next((n for n in (1, 2, 3, 4) if f"Round {n} of" in messages), 0)
            return _turn(side[-1], now)
        if name == "Deep research":
            return _researches(messages)
        reply = says.get(name)
        if reply is None:
            return _helm(seen)
        return reply if isinstance(reply, Reply) else next(iter(reply))

    return answer


async def crew(workspace: Path) -> None:
    """Agents that hand work to each other, a model at the helm, and the program's own improvement."""
    workspace.mkdir(parents=True)
    (workspace / "pilothouse.toml").write_text(
        f'[model]\nname = "{MODEL}"\nrepairs = 1\n\n[crew]\nmodel_calls = 2\n\n'
        "[mastermind]\ncandidates = 3\nbusy_percent = 100\n"
    )
    (workspace / "prompts").mkdir()
    (workspace / "prompts/planning.md").write_text("{builtin}\n\nKeep to the bakeries.\n")
    async with _model(_script()):
        async with opened(workspace) as on:
            line = on.line
            await line("agent_create bdi_agent pilot-1")
            await line("goal write the report on the bakeries || report.md is there")
            await line("run", code=None)
            await on.until("pilot-1", lambda s: not s.open_goals or s.intervention)
            await line("transfer larry Support is bad.", code=None)
            await line(f"say {WHAT}", code=None)
            await line(f"say {WHO}; {SUCCESS}", code=None)
            await line("parallel minto-pyramid,pws-validation How do we get faster?")
            await line(f"delegate devil {SYNTHESIS}", code=3)
            asked = (await on.engine.crew()).state.open_requests()
            request = next(one for one in asked if one.question.startswith("Is a person free"))
            await line(f"answer {request.id} 2", code=None)
            async with asyncio.timeout(PATIENCE_S):
                await (await on.engine.crew()).wait(str(request.handoff_id))
            await line("take back", code=None)
        async with opened(workspace) as on:
            line = on.line
            await line('debate "We hire two more people for support."')
            await line("delegate !3 deep-research why do they wait?", code=3)
            await line("guided start bmc-wizard fresh bread", code=None)
            await line("agent_disable jtbd", code=None)
            await _improve(on, workspace)


async def _improve(on: Ground, workspace: Path) -> None:
    line = on.line
    lay(workspace)
    copy_example("sample", workspace)
    await line("coord_suggest !7 mastermind.toml say it shorter")
    await line("coord_suggest sample use fewer words", code=None)
    # A small campaign with a judge of its own: that of Python projects takes minutes.
    plug(await on.engine.mastermind())
    await line("coord_improve --seed 7 texts", code=3)
    await line("coord_apply")
    await line("coord_rollback", code=None)
    await line("coord_reject i1 not now", code=None)


@contextlib.asynccontextmanager
async def _model(*script: Reply | Callable[[Seen], Reply]) -> AsyncIterator[MessagesServer]:
    """The scripted model, in the place of the one that the environment names."""
    async with MessagesServer(list(script), repeat=True) as server:
        os.environ["ANTHROPIC_BASE_URL"] = server.url
        os.environ["ANTHROPIC_API_KEY"] = "sk-test"
        try:
            yield server
        finally:
            del os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]


# ------------------------------------------------------------------ the exported sessions

RULES = """```yaml
EVENT: achieve lay_out(Name)
CONDITIONS:
  - <none>
OPERATIONS:
  - execute mkdir(Name)
  - execute cd(Name)
  - execute write("note.txt", "laid out")
  - execute ls(Found)
```"""


def _call(command: str, **args: Any) -> dict[str, Any]:
    params = {"tool_id": "simple_coder", "command": command, "args": args}
    return {"type": "EXECUTE_TOOL", "description": command, "params": params}


async def mended(workspace: Path) -> None:
    """A model whose first plan is wrong, and whose second one works."""
    steps = (_call("write", path="d/a.txt", content="a line\n"), _call("read", path="d/a.txt"))
    wrong = plan_call(_call("mkdri", path="d"), *steps)
    async with _model(wrong, plan_call(_call("mkdir", path="d"), *steps)), opened(workspace) as on:
        await on.line("agent_create bdi_agent writer")
        await on.line("goal make the directory d with a text in it")
        await on.line("run", code=None)
        await on.until("writer", lambda s: not s.open_goals)


async def ruled(workspace: Path) -> None:
    """A reasoner for whose goal a model makes a plan."""
    program = '{"program": "!lay_out(project)."}'
    async with _model(Reply(text=RULES)), opened(workspace) as on:
        await on.line(f"agent_create asl_agent thinker {program}")
        await on.line("run", code=None)
        await on.until("thinker", lambda s: s.goals and not s.open_goals)


async def stepped(workspace: Path) -> None:
    """Two agents without a model, one taken step by step by hand."""
    async with opened(workspace) as on:
        await on.line("agent_create bdi_agent left")
        await on.line("agent_create bdi_agent right")
        await on.line("goal create a directory called left and write 'l' to left/l.txt", agent="left")
        await on.line("goal write 'r' to r.txt", agent="right")
        for _ in range(2):
            await on.line("step", agent="left")
        await on.line("believe tide low", agent="left")
        await on.line("run", agent="right")
        await on.until("right", lambda s: not s.open_goals)


WORKSPACES: dict[str, Callable[[Path], Awaitable[None]]] = {
    "first-flight": first_flight,
    "steered": steered,
    "crew": crew,
}
EXPORTS: dict[str, Callable[[Path], Awaitable[None]]] = {
    "mended-plan": mended,
    "reasoner-with-a-model": ruled,
    "two-by-hand": stepped,
}


# ------------------------------------------------------------------ writing them


def pack(workspace: Path, target: Path) -> None:
    """A workspace as an archive, the same for the same files."""
    raw = io.BytesIO()
    assert not (workspace / ".pilothouse" / WRITE_AHEAD[0]).stat().st_size
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path in sorted(workspace.rglob("*")):
            parts = path.relative_to(workspace).parts
            if set(parts) & LEFT_OUT or (
                parts[0] == ".pilothouse" and path.name in REBUILT | set(WRITE_AHEAD)
            ):
                continue
            if path.name.startswith("stat-cache") or path.is_socket() or path.is_fifo():
                continue
            entry = archive.gettarinfo(path, "/".join(parts))
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            if entry.isfile():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)
    target.write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))


def repacked(target: Path) -> None:
    """An export with the owner's name and the times taken out of its headers."""
    raw = io.BytesIO()
    with tarfile.open(target) as old, tarfile.open(fileobj=raw, mode="w") as new:
        for entry in old:
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            new.addfile(entry, old.extractfile(entry))
    target.write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))


def words_of_the_machine(file: Path) -> list[str]:
    """What an archive says of the machine that it was made on."""
    home = str(Path.home())
    words = {home, str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix, platform.node()}
    words = {word for word in words if len(word) > 3 and not word.startswith(str(GROUND))}
    content = gzip.decompress(file.read_bytes())
    return sorted(word for word in words if word.encode() in content)


async def write(target: Path, only: list[str]) -> None:
    """Make all fixtures, or those of these names."""
    os.environ["PILOTHOUSE_HOME"] = str(GROUND / "home")
    for folder in ("workspaces", "exports", "settings"):
        (target / folder).mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    for name, fly in {**WORKSPACES, **EXPORTS}.items():
        if only and name not in only:
            continue
        print(name, flush=True)
        workspace = GROUND / name
        shutil.rmtree(workspace, ignore_errors=True)
        await fly(workspace)
        await _sound(workspace)
        if name in WORKSPACES:
            file = target / "workspaces" / f"{name}.tar.gz"
            pack(workspace, file)
        else:
            file = target / "exports" / f"{name}.tar.gz"
            file.unlink(missing_ok=True)
            words = ["--workspace", str(workspace), "sessions", "export", str(file)]
            assert await asyncio.to_thread(main, words) == 0
            repacked(file)
        if named := words_of_the_machine(file):
            file.unlink()
            raise SystemExit(f"{file.name} would name {', '.join(named)}: it is not kept")
        expected = await asyncio.to_thread(expected_of, workspace)
        _json(file.with_name(f"{name}.json"), expected)
        made.append(file)
    for file in sorted((target / "settings").glob("*.toml")):
        _json(file.with_suffix(".json"), settings_expected(file))
    for file in made:
        print(f"{file.name}: {file.stat().st_size:,} bytes")


def _json(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


async def _sound(workspace: Path) -> None:
    """Refuse a workspace that this very version cannot verify and replay."""
    for what in ("verify", "replay"):
        status = await asyncio.to_thread(main, ["--workspace", str(workspace), "sessions", what])
        if status != 0:
            raise SystemExit(f"{workspace}: sessions {what} ended with {status}")
    store = await SqliteJournal.open(workspace, clock=Ports().clock, read_only=True)
    try:
        print(f"  {await store.head_seq()} events in {len(await store.streams())} streams")
    finally:
        await store.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2:]))
