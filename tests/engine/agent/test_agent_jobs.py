"""Background jobs of agents: recorded as they come, ended with whatever ends the agent, and replayed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import PATIENCE_S, Flight, act, journal_holds_together, replay_of

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from engine.core.goals import GoalStatus
from engine.sandbox import jobs

TICK = "import time\nfor n in range(10**6): print('tick', n, flush=True); time.sleep(0.02)"
STUBBORN = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open("daemon", "w").close()
    time.sleep(600)
while not os.path.exists("daemon"): time.sleep(0.01)
print("all up", flush=True)
time.sleep(600)
"""
"""A program with a daemon that forked twice, left its session and ignores SIGTERM."""


def script(code: str) -> list[str]:
    return ["python", "-c", code]


def start(code: str) -> dict[str, Any]:
    """An action that starts a Python program in the background."""
    return act("start", command=script(code))


async def started(flight: Flight, code: str, agent: str = "pilot") -> str:
    """Have the operator start a program; the job's name once it runs."""
    before = set((await flight.state(agent)).jobs)
    await flight.do(cmd.CallTool, agent=agent, command="start", args={"command": script(code)})
    state = await flight.until(lambda s: set(s.jobs) - before and not s.action, agent)
    return next(job for job in state.jobs if job not in before)


def alive(sandbox: Path) -> list[int]:
    """Processes that work in the sandbox."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cwd").readlink() == sandbox.resolve():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


async def none_alive(sandbox: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while alive(sandbox):
            await asyncio.sleep(0.02)


async def test_a_job_is_recorded_from_its_start_to_its_end(flight: Flight) -> None:
    await flight.plan(start("print('one'); import time; time.sleep(0.6); print('two')"), act("ls"))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.jobs and not s.running_jobs)
    (job,) = state.jobs.values()
    assert (job.ended, job.code) == ("exit", 0)
    assert state.beliefs[f"job.{job.id}"].value == job.message
    assert job.message.startswith("exited 0 after ")
    (begun,) = await flight.payloads(ev.JobStarted)
    assert (begun.job, begun.action) == (f"j{begun.action[1:]}", begun.action)
    assert "".join(said.text for said in await flight.payloads(ev.JobOutput)) == "one\ntwo\n"
    kinds = [event.kind for event in await flight.events()]
    assert kinds.index("job.started") < kinds.index("action.finished")


async def test_a_running_job_keeps_neither_the_goal_nor_the_agent_from_their_end(flight: Flight) -> None:
    await flight.plan(start(TICK))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: not s.open_goals)
    assert {goal.status for goal in state.goals.values()} == {GoalStatus.ACHIEVED}
    assert state.mode is Mode.IDLE
    (job,) = state.running_jobs
    assert state.beliefs[f"job.{job.id}"].value.startswith("running: python -c ")
    receipt = await flight.do(cmd.Pause)
    assert "1 background job: go on" in receipt.message
    assert (await flight.state()).running_jobs


async def test_a_program_that_ends_at_once_fails_its_step(
    flight: Flight, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "SETTLE_S", PATIENCE_S)  # on a crowded machine Python itself takes longer
    await flight.plan(start("import sys; print('no port', file=sys.stderr); sys.exit(3)"))
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    assert "over already: exited 3" in state.intervention.reason
    assert not state.running_jobs


async def test_an_agent_starts_waits_for_and_ends_its_own_job(flight: Flight) -> None:
    await flight.plan(
        start(TICK),
        act("wait_job", text="tick 3"),
        act("job_output", lines=2),
        act("stop_job"),
        act("jobs"),
        act("wait_job"),
    )
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.intervention)
    (job,) = state.jobs
    said = [end.result for end in await flight.payloads(ev.ActionFinished)]
    assert said[1]["message"] == f"Job {job} printed 'tick 3'."
    assert [line.split()[0] for line in said[2]["content"].splitlines()] == ["tick", "tick"]
    assert said[3]["message"].startswith(f"Job {job} stopped after ")
    assert said[4]["items"][0].startswith(f"{job} | stopped after ")
    assert said[5]["message"].startswith(f"Job {job} stopped after ")


async def test_what_may_not_run_may_not_be_started(flight: Flight) -> None:
    for command in ("sh -c 'sleep 1'", "python x.py &", "python x.py > log"):
        await flight.do(cmd.CallTool, command="start", args={"command": command})
    await flight.until(lambda s: s.operator_actions == 3 and not s.action)
    codes = [end.code for end in await flight.payloads(ev.ActionFinished)]
    assert codes == ["not_allowed", "bad_arguments", "bad_arguments"]
    assert not (await flight.state()).jobs


async def test_output_that_comes_at_any_moment_replays(flight: Flight) -> None:
    await started(flight, TICK)
    steps = await flight.plan(
        act("run", command=script("import time; time.sleep(0.5)")),
        act("write", path="a", content="1"),
        act("run", command=script("import time; time.sleep(600)")),
    )
    await flight.do(cmd.SetBreakpoint, step=steps[1])
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.breakpoint_hit)
    heard = len(await flight.payloads(ev.JobOutput))
    async with asyncio.timeout(PATIENCE_S):
        while len(await flight.payloads(ev.JobOutput)) < heard + 5:
            await asyncio.sleep(0.02)
    await flight.do(cmd.Run)
    await flight.until(lambda s: s.acting and s.action.step == steps[2])
    (beside,) = (await flight.state()).running_jobs
    receipt = await flight.do(cmd.Stop)
    assert receipt.message == "stopped; run is cut off; 1 background job: ended"
    state = await flight.until(lambda s: not s.acting and not s.running_jobs)
    assert beside.id in state.jobs
    assert {job.ended for job in state.jobs.values()} == {"cancelled"}
    await flight.reopen()
    await started(flight, TICK)
    await flight.reopen()
    state = await flight.state()
    assert not state.running_jobs
    events = await flight.events()
    for length in range(1, len(events), 7):
        replay = await replay_of(flight.workspace, events[:length])
        assert replay.matches, f"{length}: {replay.difference}"
    assert state.jobs[max(state.jobs, key=lambda name: int(name[1:]))].ended == "cancelled"


async def test_a_stop_ends_jobs_of_an_agent_that_is_stopped_already(flight: Flight) -> None:
    await flight.do(cmd.Stop)
    await started(flight, STUBBORN)
    await flight.do(cmd.Stop)
    await flight.until(lambda s: not s.running_jobs)
    assert (await flight.do(cmd.Stop)).message == "already stopped"
    await none_alive(flight.sandbox)


async def test_the_operator_ends_one_job_of_several(flight: Flight) -> None:
    first, second = await started(flight, STUBBORN), await started(flight, TICK)
    assert "running jobs: " + f"{first}, {second}" in await flight.refused(cmd.StopJob, job="j99")
    await flight.do(cmd.StopJob, job=first)
    state = await flight.until(lambda s: len(s.running_jobs) == 1)
    assert state.running_jobs[0].id == second
    assert state.jobs[first].message.startswith("stopped after ")
    assert f"job {first} has ended" in await flight.refused(cmd.StopJob, job=first)


async def test_a_deleted_agents_jobs_end_on_record(flight: Flight) -> None:
    await started(flight, STUBBORN)
    receipt = await flight.do(cmd.DeleteAgent)
    assert "1 background job: ended" in receipt.message
    assert flight.engine.agents == ()
    events = await flight.engine.store.read("pilot")
    assert events[-1].kind == "job.ended"
    await none_alive(flight.sandbox)


async def test_agents_have_their_own_jobs_and_as_many_as_the_policy_says(flight: Flight) -> None:
    await flight.do(cmd.CreateAgent, agent="other")
    jobs = flight.engine.config.policy.jobs
    for _ in range(jobs):
        await started(flight, TICK)
    await flight.do(cmd.CallTool, command="start", args={"command": script(TICK)})
    await flight.until(lambda s: s.last_summary.startswith(f"No more than {jobs} jobs may run"))
    (failed,) = [said for said in await flight.payloads(ev.ActionFinished) if said.code]
    assert "End one first, as with: stop_job j1" in failed.result["message"]
    own = await started(flight, TICK, agent="other")
    assert own == "j1"
    await flight.do(cmd.Stop)
    await flight.until(lambda s: not s.running_jobs)
    assert (await flight.state("other")).running_jobs
    await flight.do(cmd.CallTool, agent="other", command="jobs", args={})
    await flight.until(lambda s: s.operator_actions == 2 and not s.action, "other")
    listed = (await flight.payloads(ev.ActionFinished, "other"))[-1].result["items"]
    assert len(listed) == 1
    assert listed[0].startswith("j1 | running for ")


async def test_an_agents_own_policy_holds_for_its_jobs(flight: Flight) -> None:
    await flight.do(cmd.CreateAgent, agent="other", config={"sandbox": {"jobs": 1, "job_s": 0.7}})
    await started(flight, TICK)
    await started(flight, TICK, agent="other")
    await flight.do(cmd.CallTool, agent="other", command="start", args={"command": script(TICK)})
    await flight.until(lambda s: s.last_summary.startswith("No more than 1 jobs may run"), "other")
    state = await flight.until(lambda s: not s.running_jobs, "other")
    assert [job.ended for job in state.jobs.values()] == ["timeout"]
    assert (await flight.state()).running_jobs


async def test_a_flood_is_slowed_counted_and_ended(flight: Flight) -> None:
    loop = asyncio.get_running_loop()
    code = "import time\nwhile True: print('y' * 100_000); time.sleep(0.004)"
    begun = loop.time()
    await started(flight, code)
    state = await flight.until(lambda s: not s.running_jobs)
    took = loop.time() - begun
    (job,) = state.jobs.values()
    assert job.ended == "output"
    assert "wrote more than 64.0 MiB" in job.message
    pieces = await flight.payloads(ev.JobOutput)
    assert len(pieces) <= 10 * took + 2
    assert max(len(piece.text) for piece in pieces) <= 64 * 1024
    told = sum(len(piece.text) for piece in pieces) + sum(piece.skipped for piece in pieces)
    assert told > 60 * 1024 * 1024
    assert sum(len(piece.text) for piece in pieces) < 6 * 1024 * 1024


async def test_hostile_output_is_recorded_as_it_is(flight: Flight) -> None:
    code = "import os; os.write(1, b'\\x1b]52;c;aGk=\\x07\\x9b2J\\xff\\xfe\\0'); import time; time.sleep(1)"
    await started(flight, code)
    await flight.until(lambda s: not s.running_jobs)
    (said,) = await flight.payloads(ev.JobOutput)
    assert said.text == "\x1b]52;c;aGk=\x07\ufffd2J\ufffd\ufffd\0"


LIFE = """
import asyncio, sys
from pathlib import Path
from engine.core import commands as cmd
from engine.api.engine import Engine

async def live():
    engine = await Engine.open(Path(sys.argv[1]))
    for agent in ("pilot", "other"):
        await engine.submit(cmd.CreateAgent(agent=agent))
        for code in sys.argv[2:]:
            call = {"command": ["python", "-c", code]}
            await engine.submit(cmd.CallTool(agent=agent, command="start", args=call))
    for agent in ("pilot", "other"):
        while len((await engine.view(agent)).running_jobs) < len(sys.argv) - 2 or (
            (await engine.view(agent)).action
        ):
            await asyncio.sleep(0.01)
    print("up", flush=True)
    await asyncio.sleep(600)

asyncio.run(live())
"""


async def test_a_killed_engine_leaves_no_process_of_a_job(tmp_path: Path) -> None:
    engine = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", LIFE, str(tmp_path), STUBBORN, TICK), stdout=asyncio.subprocess.PIPE
    )
    assert engine.stdout is not None
    async with asyncio.timeout(3 * PATIENCE_S):
        assert await engine.stdout.readline() == b"up\n"
    assert len(alive(tmp_path / "sandbox")) >= 8
    os.kill(engine.pid, signal.SIGKILL)
    await engine.wait()
    await none_alive(tmp_path / "sandbox")
    again = await Engine.open(tmp_path)
    try:
        for agent in ("pilot", "other"):
            state = await again.view(agent)
            assert [job.ended for job in state.jobs.values()] == ["unknown", "unknown"]
            assert state.beliefs["job.j1"].value == "ended with Pilothouse; how is not known"
            assert state.run is RunState.PAUSED
    finally:
        await again.close()
    await journal_holds_together(tmp_path)


@pytest.mark.parametrize("when", ["starting", "started"])
async def test_closing_ends_jobs_and_records_it(
    tmp_path: Path, open_flight: Callable[..., Any], when: str
) -> None:
    flight: Flight = await open_flight(tmp_path)
    if when == "started":
        await started(flight, STUBBORN)
    else:
        await flight.do(cmd.CallTool, command="start", args={"command": script(STUBBORN)})
        await flight.until(lambda s: s.acting)
    await flight.engine.close()
    assert alive(flight.sandbox) == []
    await journal_holds_together(tmp_path)
    await flight.open()
    state = await flight.state()
    assert {job.ended for job in state.jobs.values()} <= {"cancelled"}
    assert not any(
        event.kind == "job.ended" and json.loads(event.body)["ended"] == "unknown"
        for event in await flight.events()
    )
