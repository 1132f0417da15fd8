"""Why metacognition's numbers are not searched: no sealed task can tell one value from another."""

from __future__ import annotations

from pathlib import Path

from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.ports import Ports
from engine.improve.ports import Split
from engine.improve.search.components import RANGES, THRESHOLDS, components
from engine.improve.search.prompts import SIZES as PROMPT_SIZES
from engine.improve.search.prompts import prompt_tasks
from engine.improve.search.suites import TRIAL_SIZES
from engine.improve.search.trial_tasks import FastClock, draw_trial_tasks, run_trial_tasks
from engine.models.choice import ModelChoice
from tests.mastermind.test_parts_prompts import mind
from tests.messages_server import MessagesServer

EAGER = (
    "[metacognition]\nmodel = {model}\nreflection_threshold = 3\nconsolidation_threshold = 5\n"
    "optimise_every = 1\nadapt_every = 1\npromote_every = 1\nmaintain_every = 1\nlink_every = 1\n"
)


async def test_without_a_model_no_sealed_task_tells_them_apart() -> None:
    async def opener(place: Path) -> Engine:
        config = EngineConfig(snapshots=SnapshotRule.OFF)
        return await Engine.open(place, ports=Ports(clock=FastClock(), seed=lambda: 7), config=config)

    sealed = draw_trial_tasks("sealed", "judge 3", TRIAL_SIZES[Split.SEALED])
    usual = await run_trial_tasks(opener, sealed)
    assert await run_trial_tasks(opener, sealed, thresholds=EAGER.format(model="false")) == usual


async def test_with_a_model_no_sealed_task_lasts_until_one_falls_due(tmp_path: Path) -> None:
    async with MessagesServer([mind([])], repeat=True) as server:
        environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        model = ModelChoice.from_environment(environ, name="claude-sonnet-5-5")

        async def opener(place: Path) -> Engine:
            return await Engine.open(place, config=EngineConfig(model=model, snapshots=SnapshotRule.OFF))

        sealed = prompt_tasks(Split.SEALED, "planning 3", PROMPT_SIZES[Split.SEALED])
        landed = await run_trial_tasks(
            opener, sealed, thresholds=EAGER.format(model="true"), thinker="claude"
        )
        assert sum(one.achieved for one in landed) >= 6
        asked = [one for one in server.requests if "You look back on the work" in one.said()]
    assert not asked


def test_what_is_not_searched_is_told_with_the_reason(tmp_path: Path) -> None:
    (component,) = [one for one in components(tmp_path) if one.id == THRESHOLDS]
    assert {table for table, _ in RANGES} == {"recovery"}
    assert component.unsearched.startswith("metacognition's numbers, as ")
