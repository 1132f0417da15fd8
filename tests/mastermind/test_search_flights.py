"""Thresholds and agents' specifications: searched and judged by small tasks that real agents fly."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.improvement import Component, Ruling
from engine.core.ports import Ports
from engine.improve.judge.judge import Judge
from engine.improve.ports import NotJudged, Outcome, Split
from engine.improve.search.audit import JournalAuditor
from engine.improve.search.components import AGENT_PREFIX, THRESHOLDS, THRESHOLDS_FILE, components
from engine.improve.search.suites import ComponentSearch, SearchProposer, SearchSuites, TrialSuite
from engine.improve.search.trial_tasks import FastClock

WORSE = "[recovery]\nmax_consecutive_errors = 1\n"


async def opener(place: Path) -> Engine:
    config = EngineConfig(snapshots=SnapshotRule.OFF)
    return await Engine.open(place, ports=Ports(clock=FastClock(), seed=lambda: 7), config=config)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = await opener(tmp_path)
    yield made
    await made.close()


def of(workspace: Path, ident: str, agents: dict[str, str] | None = None) -> Component:
    return next(component for component in components(workspace, agents) if component.id == ident)


def tree(place: Path, path: str, text: str) -> Path:
    (place / path).parent.mkdir(parents=True)
    (place / path).write_text(text, encoding="utf-8")
    return place


@pytest.mark.slow
async def test_a_threshold_that_costs_goals_is_found_and_its_mend_is_promoted(
    engine: Engine, tmp_path: Path
) -> None:
    (engine.workspace / THRESHOLDS_FILE).write_text(WORSE, encoding="utf-8")
    searching = ComponentSearch(engine.workspace, engine.store, opener)
    auditor = JournalAuditor(engine.workspace, engine.store)
    (component,) = [each for each in await auditor.components() if each.id == THRESHOLDS]
    proposer = SearchProposer(searching)
    (proposal,) = await proposer.propose(component, engine.workspace, (), random.Random(1), 0.0)
    assert "max_consecutive_errors 1 → 3" in proposal.title
    trees = [
        tree(tmp_path / name, THRESHOLDS_FILE, text)
        for name, text in (("before", WORSE), ("after", str(proposal.files[THRESHOLDS_FILE])))
    ]
    suite = await SearchSuites(searching).make(component, trees[0], 3)
    verdict = await Judge(tmp_path / "judge").compare(*trees, component, proposal, suite, seed=3)
    assert verdict.ruling is Ruling.BETTER, verdict.reasons
    assert verdict.gain is not None
    assert verdict.gain.shown


async def test_an_agent_takes_the_workspaces_thresholds_beneath_its_own_configuration(engine: Engine) -> None:
    tree(engine.workspace, f"x/{THRESHOLDS_FILE}", "")
    (engine.workspace / THRESHOLDS_FILE).write_text(
        "[recovery]\nmax_consecutive_errors = 5\n[metacognition]\nreflection_threshold = 9\n",
        encoding="utf-8",
    )
    given = {"metacognition": {"reflection_threshold": 4}}
    assert (await engine.submit(cmd.CreateAgent(agent="pilot", config=given))).ok
    state = await engine.view("pilot")
    assert state.config.max_consecutive_errors == 5
    assert state.config.meta["metacognition"] == {"reflection_threshold": 4}
    (engine.workspace / THRESHOLDS_FILE).write_text("[approvals]\npreset = 'allow'\n", encoding="utf-8")
    refused = await engine.submit(cmd.CreateAgent(agent="other"))
    assert not refused.ok
    assert "'approvals' is no table of it" in refused.message


async def test_no_candidate_loosens_an_agents_rules(engine: Engine, tmp_path: Path) -> None:
    config = {
        "approvals": {"preset": "ask"},
        "budget": {"actions": 50},
        "recovery": {"max_consecutive_errors": 2},
    }
    assert (await engine.submit(cmd.CreateAgent(agent="scout", config=config))).ok
    searching = ComponentSearch(engine.workspace, engine.store, opener)
    component = of(engine.workspace, f"{AGENT_PREFIX}scout", {"scout": "bdi_agent"})
    (path,) = component.paths
    text = await searching.text(component, engine.workspace)
    suite = await SearchSuites(searching).make(component, engine.workspace, 1)
    assert isinstance(suite, TrialSuite)
    rules = next(check for check in suite.checks(Split.WORK) if check.data == "rules")

    async def told(**changes: object) -> str:
        spec = json.loads(text)
        spec["config"] |= changes
        place = tmp_path / f"tree-{len(list(tmp_path.iterdir()))}"
        report = await suite.examine(tree(place, path, json.dumps(spec)), rules, seed=1)
        return "" if report.outcome is Outcome.HOLDS else report.text

    assert await told(recovery={"max_consecutive_errors": 4}) == ""
    for loosened in (
        {"approvals": {"preset": "allow"}},
        {"budget": {"actions": 500}},
        {"sandbox": {"network": "on"}},
    ):
        assert f"'{next(iter(loosened))}' is other than before" in await told(**loosened)


async def test_a_component_without_tasks_is_refused_in_a_sentence(engine: Engine) -> None:
    tree(engine.workspace, "plans/greeter.asl", "+!greet <- .print(hello).\n")
    suites = SearchSuites(ComponentSearch(engine.workspace, engine.store, opener))
    with pytest.raises(NotJudged, match=r"plans/greeter\.asl has no plan for !reach\(X\): only libraries"):
        await suites.make(of(engine.workspace, "plans/greeter"), engine.workspace, 1)
