"""One campaign of a planted project in a process of its own; `python -m tests.benchmarks.evolve.campaign`.

With a file of proposals a scripted model gives them once, over the Messages API, when it is first asked.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.campaigns import StartJob
from engine.core.improvement import MastermindSettings
from engine.improve.judge.box import Box
from engine.models.choice import ModelChoice
from tests.messages_server import MessagesServer, Reply, object_call
from tests.messages_server.server import Seen


def counted() -> list[float]:
    """What each box took from now on: the kernel gives what is killed in a jail to nobody's account."""
    spent: list[float] = []
    close = Box.close

    async def noted(box: Box, placing: asyncio.Future[None]) -> None:
        spent.append(box.processor_s)
        await close(box, placing)

    Box.close = noted  # type: ignore[method-assign]
    return spent


def scripted(proposals: list[dict[str, Any]]) -> Callable[[Seen], Reply]:
    """A model that has a fixed table of proposals, and nothing more to propose afterwards."""
    left = list(proposals)

    def reply(_seen: Seen) -> Reply:
        some, left[:] = list(left), []
        return object_call("propose_changes", changes=some)

    return reply


async def with_model(
    workspace: Path, name: str, seed: int, seconds: float, proposals: list[dict[str, Any]]
) -> dict[str, Any]:
    """The campaign with a scripted model, or without one where there is no proposal."""
    if not proposals:
        return await campaign(workspace, name, seed, seconds, None)
    async with MessagesServer([scripted(proposals)], repeat=True) as server:
        environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "none"}
        model = ModelChoice.from_environment(environ, name="claude-sonnet-5-5")
        return await campaign(workspace, name, seed, seconds, model)


async def campaign(
    workspace: Path, name: str, seed: int, seconds: float, model: ModelChoice | None
) -> dict[str, Any]:
    """Run `coord_improve NAME` to its end; what came of it."""
    config = EngineConfig(mastermind=MastermindSettings(interval_s=0.0), model=model)
    spent, engine = counted(), await Engine.open(workspace, config=config)
    try:
        mastermind: Any = await engine.mastermind()
        words = {"verb": "coord_improve", "argument": name, "seed": seed, "seconds": seconds}
        words |= {"usd": 5.0} if model else {}
        receipt = await engine.submit(StartJob.model_validate(words))
        job = await mastermind.wait(receipt.data["job"])
        done: dict[str, Any] = {"status": str(job.status), "message": job.message, "files": {}, "tried": []}
        for run in mastermind.state.campaigns.values():
            done["tried"] = [
                [candidate.title, str(candidate.verdict and candidate.verdict.ruling), why(candidate)]
                for candidate in run.candidates
            ]
            done["findings"] = [f"{finding.concern}: {finding.text}" for finding in run.findings]
            if chosen := run.candidate(run.chosen):
                done["files"] = {
                    path: engine.blobs.read(blob).decode() for path, blob in chosen.files.items() if blob
                }
        return done | {"processor_s": sum(spent) + time.process_time()}
    finally:
        await engine.close()


def why(candidate: Any) -> list[str]:
    return list(candidate.verdict.reasons) if candidate.verdict else []


if __name__ == "__main__":
    place, name, seed, seconds, result, table = sys.argv[1:]
    asked = Path(place), name, int(seed), float(seconds), json.loads(Path(table).read_text())
    Path(result).write_text(json.dumps(asyncio.run(with_model(*asked))))
