"""The crew for Python programs; those of the guide are run by `tests/test_wheel.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.agent.shared import EngineConfig
from engine.api.crew import CrewAgent, HandoffManager
from engine.crew.ontology.kinds import ErrorCode, InvalidError
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.ports import HandoffError
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.engine.crew.flight import CLEAR, spec_of
from tests.messages_server import MessagesServer, object_call


async def test_refusals_are_results_and_a_workspace_is_opened_again(tmp_path: Path) -> None:
    async with MessagesServer([lambda _: object_call("return_result", output="done")], repeat=True) as server:
        choice = ModelChoice(Endpoint(server.url, "sk-test"), "claude-opus-4-6", retries=Retries(attempts=1))
        manager = HandoffManager(tmp_path, EngineConfig(model=choice))
        manager.register_agent("mine", parse_spec(spec_of("one")))
        context = manager.create_delegation("user", "mine", "go", CLEAR)
        assert (await manager.execute(context)).output == "done"
        unknown = manager.create_delegation("user", "ona", "go", CLEAR)
        failed, good = await manager.execute_parallel(
            [unknown, manager.create_delegation("user", "one", "go", CLEAR)]
        )
        assert (failed.error_code, good.output) == (ErrorCode.UNKNOWN_AGENT, "done")
        await manager.close()
        assert await CrewAgent(manager, "one").run("go on with it") == "done"
        with pytest.raises(HandoffError, match="refused: no agent ona is registered; near it: one"):
            await CrewAgent(manager, "ona").run("go")
        with pytest.raises(InvalidError, match="from_agent"):
            manager.create_delegation("A B", "one", "go")
        with pytest.raises(InvalidError, match="problem_clarity: Input should be a valid dict"):
            manager.create_delegation("user", "one", "go", "churn")  # type: ignore[arg-type]
        assert await manager.execute_parallel([]) == ()
        await manager.close()
