"""A process whose crew has as many handoffs open as may be, and is disturbed until it is killed.

Run by `test_crew_faults` with WORKSPACE URL SEED TARGET; behind TARGET handoffs it lets all come to an end.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from crew_desk import MODEL, spec  # noqa: E402
from whole_crew import CLEAR  # noqa: E402

from engine.agent.shared import EngineConfig  # noqa: E402
from engine.api.engine import Engine  # noqa: E402
from engine.core import crew_commands as cc  # noqa: E402
from engine.core.command import Command  # noqa: E402
from engine.core.crew import CrewSettings  # noqa: E402
from engine.crew.crew import Crew  # noqa: E402
from engine.crew.handoffs.admission import OPEN  # noqa: E402
from engine.crew.ontology.kinds import HandoffState  # noqa: E402
from engine.models.choice import ModelChoice  # noqa: E402
from engine.models.endpoint import Endpoint, Retries  # noqa: E402

MAY = {"routing": {"can_delegate_to": ["leaf", "slow", "pipe"]}}
LONG = {"quality_criteria": [{"check": "min_words", "args": {"n": 20}}]}
SIDES = [{"label": label, "agent_id": "leaf", "stance": f"stance {label}"} for label in "AB"]
QUIET = {"thinking": "off"}
SPECS = [
    spec("leaf", "operator", model=QUIET),
    spec("slow", "operator", model=QUIET),
    spec("gated", "operator", instructions=LONG, model=QUIET),
    spec("boss", "operator", handoff=MAY, model=QUIET),
    spec("team", "collaborative", sub_agents=[{"id": one, "role": one.title()} for one in ("x", "y")]),
    spec("pipe", "pipeline", phases=[{"id": "p", "name": "P", "inputs": ["task"], "outputs": ["x"]}]),
    spec("arguing", "collaborative", debate={"motion": "We buy it.", "sides": SIDES, "rounds": 1}),
]
WEIGHTS = (8, 4, 2, 4, 3, 2, 1)
OVER = (HandoffState.FAILED, HandoffState.TIMED_OUT, HandoffState.CANCELLED)


def disturbance(crew: Crew, dice: random.Random) -> Command | None:
    """What the operator does next: hands something over, cancels, tries again, resumes."""
    handoffs = list(crew.state.handoffs.values())
    open_ones = [one for one in handoffs if one.open]
    again = [one for one in handoffs[-100:] if one.state in OVER and not one.context.parent_id]
    paused = [one for one in open_ones if one.state is HandoffState.PAUSED]
    what = dice.random()
    if what < 0.1 and open_ones:
        return cc.CancelHandoff(handoff=dice.choice(open_ones).id, reason="it took its time")
    if paused and what < 0.3:
        return cc.ResumeHandoff(handoff=dice.choice(paused).id)
    if len(open_ones) >= OPEN:
        return None
    if what < 0.35 and again:
        return cc.RetryHandoff(handoff=dice.choice(again).id)
    if what < 0.4:
        return cc.Parallel(to=("leaf", "gated"), task="go", clarity=CLEAR)
    (one,) = dice.choices(SPECS, WEIGHTS)
    limit = dice.choice((2, 3)) if one.id == "slow" else 8
    return cc.Delegate(to=one.id, task="go", clarity=CLEAR, timeout_s=limit)


async def end_all(engine: Engine, crew: Crew) -> None:
    """Let all come to an end; what waits for the operator is cancelled."""
    while any(crew.state.open()) or not all(group.ended for group in crew.state.groups.values()):
        for one in list(crew.state.open()):
            if one.state is HandoffState.PAUSED:
                await engine.submit(cc.ResumeHandoff(handoff=one.id))
            elif one.state is HandoffState.WAITING_HUMAN:
                await engine.submit(cc.CancelHandoff(handoff=one.id))
        await asyncio.sleep(0.05)


async def main(workspace: Path, url: str, seed: str, target: int) -> None:
    """Disturb the crew until there are so many handoffs."""
    dice = random.Random(seed)
    choice = ModelChoice(Endpoint(url, "sk-test"), MODEL, retries=Retries(attempts=1))
    config = EngineConfig(model=choice, crew=CrewSettings(model_calls=8, built_ins=False))
    engine = await Engine.open(workspace, config=config)
    crew = await engine.crew()
    for one in SPECS:
        if one.id not in crew.state.agents:
            await engine.submit(cc.RegisterAgent(spec=one.model_dump(mode="json")))
    while len(crew.state.handoffs) < target:
        command = disturbance(crew, dice)
        if command is not None:
            await engine.submit(command)
        await asyncio.sleep(0 if command is not None else 0.01)
    await end_all(engine, crew)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
