"""Mastermind's own calls of models are kept within the workspace's budget."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.budgets import SpendingLimits
from engine.core.campaigns import StartJob
from engine.core.improvement import JobRecord, JobStatus
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.engine.improve.running.words import lay
from tests.messages_server import MessagesServer

MODEL = "claude-opus-4-6"


@asynccontextmanager
async def opened(
    workspace: Path, server: MessagesServer, limits: SpendingLimits | None = None
) -> AsyncIterator[Engine]:
    choice = ModelChoice(Endpoint(server.url), MODEL, retries=Retries(attempts=1))
    config = EngineConfig(model=choice, budget=limits or SpendingLimits())
    engine = await Engine.open(workspace, config=config)
    try:
        yield engine
    finally:
        await engine.close()


async def job(engine: Engine, verb: str, argument: str, **said: object) -> JobRecord:
    command = StartJob.model_validate({"verb": verb, "argument": argument, **said})
    receipt = await engine.submit(command, operator="anna")
    assert receipt.ok, receipt.message
    return await (await engine.mastermind()).wait(receipt.data["job"])


async def test_a_call_that_could_break_the_workspaces_budget_is_not_made(tmp_path: Path) -> None:
    lay(tmp_path)
    limits = SpendingLimits(usd=0.0001)
    async with MessagesServer([]) as server, opened(tmp_path, server, limits) as engine:
        mastermind = await engine.mastermind()
        answered = await job(engine, "coord_improve", "recipes", usd=1.0)
        assert answered.status is JobStatus.DONE
        assert "the workspace" in answered.message
        foretold = await mastermind.preview(StartJob(verb="evolve", argument="recipes", usd=1.0))
        assert foretold["left"].startswith("$0.0001 of $0.0001 left")
        assert not server.requests
