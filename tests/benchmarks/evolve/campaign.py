"""One campaign of a planted project in a process of its own; `python -m tests.benchmarks.evolve.campaign`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.campaigns import StartJob
from engine.core.improvement import MastermindSettings
from engine.improve.judge.box import Box


def counted() -> list[float]:
    """What each box took from now on: the kernel gives what is killed in a jail to nobody's account."""
    spent: list[float] = []
    close = Box.close

    async def noted(box: Box, placing: asyncio.Future[None]) -> None:
        spent.append(box.processor_s)
        await close(box, placing)

    Box.close = noted  # type: ignore[method-assign]
    return spent


async def campaign(workspace: Path, name: str, seed: int, seconds: float) -> dict[str, Any]:
    """Run `coord_improve NAME` to its end; what came of it."""
    config = EngineConfig(mastermind=MastermindSettings(interval_s=0.0))
    spent, engine = counted(), await Engine.open(workspace, config=config)
    try:
        mastermind: Any = await engine.mastermind()
        words = {"verb": "coord_improve", "argument": name, "seed": seed, "seconds": seconds}
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
    place, name, seed, seconds, result = sys.argv[1:]
    Path(result).write_text(json.dumps(asyncio.run(campaign(Path(place), name, int(seed), float(seconds)))))
