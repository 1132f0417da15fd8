"""A process that holds an engine with a crew in each of the states that a kill may find; see `HELD`.

Run as `python held_crew.py WORKSPACE URL`; it says the handoffs' ids in a line and waits for its end.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from crew_desk import MODEL, spec  # noqa: E402
from whole_crew import CLEAR  # noqa: E402

from engine.agent.shared import EngineConfig  # noqa: E402
from engine.api.engine import Engine  # noqa: E402
from engine.core import crew_commands as cc  # noqa: E402
from engine.core.crew import CrewSettings  # noqa: E402
from engine.crew.ontology.kinds import HandoffState  # noqa: E402
from engine.models.choice import ModelChoice  # noqa: E402
from engine.models.endpoint import Endpoint, Retries  # noqa: E402

STEPS = [{"id": "a", "title": "A", "required": True}, {"id": "b", "title": "B", "depends_on": ["a"]}]
PHASES = [
    {"id": "p", "name": "P", "inputs": ["task"], "outputs": ["x"]},
    {"id": "q", "name": "Q", "inputs": ["x"], "outputs": ["y"]},
]
SPECS = [
    spec("bmc-wizard", "guided", steps=STEPS),
    spec("pipe", "pipeline", phases=PHASES, model={"thinking": "off"}),
    spec("one", "operator"),
    spec("late", "operator"),
]


async def main(workspace: Path, url: str) -> None:
    """One waits for the operator, two ask the model, one is queued for it."""
    choice = ModelChoice(Endpoint(url, "sk-test"), MODEL, retries=Retries(attempts=1))
    engine = await Engine.open(workspace, config=EngineConfig(model=choice, crew=CrewSettings(model_calls=2)))
    crew = await engine.crew()
    for one in SPECS:
        await engine.submit(cc.RegisterAgent(spec=one.model_dump(mode="json")))

    async def hand(to: str) -> str:
        said = await engine.submit(cc.Delegate(to=to, task="go", clarity=CLEAR))
        return str(said.data["handoff"])

    wizard = await hand("bmc-wizard")
    while not crew.state.open_requests(wizard):
        await asyncio.sleep(0.002)
    await engine.submit(cc.GuidedMove(handoff=wizard, move="answer", value="shops"))
    pipe, single = await hand("pipe"), await hand("one")
    while crew.permits.in_use < 2 or not crew.state.handoffs[pipe].progress:
        await asyncio.sleep(0.002)
    while [one.title for one in crew.state.open_requests(wizard)] != ["B"]:
        await asyncio.sleep(0.002)
    late = await hand("late")
    assert crew.state.handoffs[late].state is HandoffState.QUEUED
    await crew.stream.commit()
    for run in crew.state.by_run:
        while (await engine.store.head(run)).version < (await engine.view(run)).version:
            await asyncio.sleep(0.002)
    print(wizard, pipe, single, late, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
