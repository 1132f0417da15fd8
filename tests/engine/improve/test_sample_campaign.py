"""Campaigns on the sample project and its three defects: with a model, without one, and where all is well."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli.examples import copy_example, load_examples
from engine.agent.shared import EngineConfig
from engine.api.engine import Engine
from engine.core.campaigns import ApplyCandidate, ForMastermind, RollBack, StartJob
from engine.core.improvement import (
    BacklogItem,
    Campaign,
    CampaignStatus,
    Concern,
    ItemStatus,
    JobRecord,
    JobStatus,
    MastermindSettings,
    Ruling,
)
from engine.improve.code.projects import find_projects, project_box, run_tests
from engine.improve.judge.box import Boxes
from engine.models.choice import ModelChoice
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.tier import JailRefusal, best_jail
from tests.messages_server import MessagesServer, object_call

HERE = Path(__file__).parent
ORDERS, STATS = "sandbox/sample/orders.py", "sandbox/sample/stats.py"
SLOW = """    seen = []
    for order in orders:
        if order.customer not in seen:
            seen.append(order.customer)
    return seen
"""
QUICK = "    return list(dict.fromkeys(order.customer for order in orders))\n"
UNCHECKED = """    parts = line.strip().split(",")
    return Order(parts[0].strip(), parts[1].strip(), float(parts[2]))
"""
CHECKED = """    parts = [part.strip() for part in line.split(",")]
    if len(parts) != 3:
        raise OrderError(f"{line!r} has {len(parts)} parts and not three")
    try:
        amount = float(parts[2])
    except ValueError:
        raise OrderError(f"{parts[2]!r} is no amount in {line!r}") from None
    return Order(parts[0], parts[1], amount)
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(isinstance(best_jail(SandboxPolicy()), JailRefusal), reason="no jail here"),
]


class Ground:
    """A workspace with the sample project, open."""

    def __init__(self, engine: Engine, mastermind: Any) -> None:
        self.engine, self.mastermind = engine, mastermind

    async def job(self, verb: str, argument: str = "", **said: object) -> JobRecord:
        return await self.do(StartJob.model_validate({"verb": verb, "argument": argument, "seed": 7, **said}))

    async def do(self, command: ForMastermind) -> JobRecord:
        receipt = await self.engine.submit(command, operator="anna")
        assert receipt.ok, receipt.message
        return await self.mastermind.wait(receipt.data["job"])  # type: ignore[no-any-return]

    @property
    def campaigns(self) -> list[Campaign]:
        return list(self.mastermind.state.campaigns.values())

    @property
    def items(self) -> list[BacklogItem]:
        return list(self.mastermind.state.items.values())

    async def apply(self, campaign: str) -> None:
        job = await self.do(ApplyCandidate(campaign=campaign))
        assert job.status is JobStatus.DONE, job.message

    async def tests(self) -> set[str]:
        """What became of the project's tests as they are in the workspace."""
        root = self.engine.workspace
        async with project_box(Boxes(), root, find_projects(root)[0]) as box:
            return {entry["outcome"] for entry in (await run_tests(box)).values()}

    async def tree(self, campaign: Campaign) -> str:
        assert campaign.component is not None
        return str(await self.mastermind.applier.tree(campaign.component))


Opened = Callable[..., Awaitable[Ground]]


NOTHING = shutil.ignore_patterns("__pycache__", ".pytest_cache")


def lay(workspace: Path) -> None:
    copy_example("sample", workspace)
    shutil.copytree(HERE / "held_out", workspace / ".pilothouse/held_out", ignore=NOTHING)


async def open_at(workspace: Path, model: ModelChoice | None = None) -> Ground:
    settings = MastermindSettings(interval_s=0.0)
    engine = await Engine.open(workspace, config=EngineConfig(mastermind=settings, model=model))
    return Ground(engine, await engine.mastermind())


async def _fly(workspace: Path) -> None:
    ground = await open_at(workspace)
    try:
        job = await ground.job("coord_improve", "sample")
        assert job.status is JobStatus.NEEDS_OPERATOR, job.message
    finally:
        await ground.engine.close()


@pytest.fixture(scope="module")
def _flown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose first campaign, without a model, waits for the operator."""
    workspace = tmp_path_factory.mktemp("flown") / "ws"
    lay(workspace)
    asyncio.run(_fly(workspace))
    return workspace


@pytest.fixture
def flown(_flown: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copytree(_flown, tmp_path / "ws", symlinks=True))


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    grounds: list[Ground] = []

    async def open_(workspace: Path, model: ModelChoice | None = None) -> Ground:
        grounds.append(await open_at(workspace, model))
        return grounds[-1]

    yield open_
    for ground in grounds:
        await ground.engine.close()


async def test_without_a_model_the_test_and_the_loop_are_mended_and_the_check_is_listed(
    opened: Opened, flown: Path
) -> None:
    ground = await opened(flown)
    (campaign,) = ground.campaigns
    assert rulings(campaign) == [
        ("fixer:repair", Ruling.BETTER),
        ("fixer:membership", Ruling.BETTER),
        ("campaign", Ruling.BETTER),
    ]
    assert campaign.chosen == "k1.3"
    assert campaign.usd == 0
    _, faster, whole = campaign.candidates
    assert set(whole.files) == {ORDERS, STATS}
    assert whole.verdict is not None
    assert "tests/test_stats.py::test_median_of_an_even_number" in whole.verdict.mended
    assert faster.verdict is not None
    assert faster.verdict.gain is not None
    assert faster.verdict.gain.low > 50
    (item,) = ground.items
    assert (item.concern, item.target, item.status) == (Concern.ROBUSTNESS, "sample", ItemStatus.PENDING)
    assert "parse_order('') raised IndexError" in item.evidence

    before = await ground.tree(campaign)
    await ground.apply("k1")
    assert await ground.tests() == {"passed"}
    job = await ground.job("coord_process_backlog")
    assert (job.status, ground.campaigns[1].status) == (JobStatus.DONE, CampaignStatus.NO_IMPROVEMENT)
    (item,) = ground.items
    assert (item.status, item.attempts) == (ItemStatus.FAILED, 1)
    assert "no improvement found: nobody had a change to propose" in item.message

    begun = time.monotonic()
    receipt = await ground.engine.submit(RollBack(campaign="k1"), operator="anna")
    print(f"the rollback took {time.monotonic() - begun:.3f} s")
    assert receipt.ok, receipt.message
    assert await ground.tree(campaign) == before


def rulings(campaign: Campaign) -> list[tuple[str, Ruling]]:
    """Who thought of each candidate, and what the judge said."""
    return [(one.origin, one.verdict.ruling) for one in campaign.candidates if one.verdict]


def change(title: str, path: str, text: str) -> dict[str, Any]:
    """One change as a model gives it."""
    return {
        "title": title,
        "why": "a line that is no order is to say so",
        "files": [{"path": path, "text": text}],
    }


async def test_with_a_model_all_three_are_mended_and_its_wrong_answers_are_shown(
    opened: Opened, flown: Path
) -> None:
    orders = load_examples()["sample"].files["sandbox/sample/orders.py"]
    mended = orders.replace(
        SLOW,
        SLOW.replace("seen = []", "seen = []\n    seen_set = set()")
        .replace("not in seen:", "not in seen_set:")
        .replace("seen.append", "seen_set.add(order.customer)\n            seen.append"),
    )
    checked = mended.replace(UNCHECKED, CHECKED)
    looks = checked.replace(
        "@dataclass", 'KNOWN = Path("held_out/test_held_out.py").read_text()\n\n\n@dataclass'
    )
    script = [
        object_call(
            "propose_changes", changes=[change("another test", "sandbox/sample/tests/test_stats.py", "")]
        ),
        object_call(
            "propose_changes",
            changes=[
                change("a check", ORDERS, checked.replace("if len(parts) != 3:", "if len(parts) != 3")),
                change("a check that knows", ORDERS, looks),
                change("a check", ORDERS, checked),
            ],
        ),
        object_call("propose_changes", changes=[]),
    ]
    async with MessagesServer(script) as server:
        own = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"}
        choice = ModelChoice.from_environment(own, name="claude-sonnet-5-5")
        ground = await opened(flown, choice)
        listed = ground.items
        job = await ground.job("coord_improve", "sample", usd=2.0)
        assert len(server.requests) == len(script)
        asked = server.requests[0].said()
    assert "parse_order('') raised IndexError" in asked
    assert "held_out" not in asked
    assert job.status is JobStatus.NEEDS_OPERATOR, job.message
    _, campaign = ground.campaigns
    assert choice is not None
    model = f"model:{choice.name}"
    assert rulings(campaign) == [
        ("fixer:repair", Ruling.BETTER),
        ("fixer:membership", Ruling.BETTER),
        (model, Ruling.BROKEN),
        (model, Ruling.REJECTED),
        (model, Ruling.BETTER),
        ("campaign", Ruling.BETTER),
    ]
    assert "an answer before was refused" in campaign.candidates[2].why
    assert campaign.candidates[3].verdict is not None
    assert "read the held-out set" in campaign.candidates[3].verdict.cheats
    assert campaign.usd > campaign.candidates[2].cost_usd > 0
    assert any("it sees nothing to make better" in stage.text for stage in campaign.stages)
    assert ground.items == listed, "nothing is listed that was mended"
    await ground.apply("k2")
    assert await ground.tests() == {"passed"}
    assert CHECKED in (ground.engine.workspace / ORDERS).read_text()


async def test_a_good_project_is_left_as_it_is(opened: Opened, tmp_path: Path) -> None:
    """Behaviour 70, on a real project: nothing to make better is a plain answer."""
    lay(tmp_path)
    ground = await opened(tmp_path)
    sample = ground.engine.workspace / "sandbox/sample"
    for name, old, new in (
        ("orders.py", SLOW, QUICK),
        ("orders.py", UNCHECKED, CHECKED),
        ("stats.py", "ordered[middle + 1]", "ordered[middle - 1]"),
    ):
        text = (sample / name).read_text()
        assert old in text
        (sample / name).write_text(text.replace(old, new))
    job = await ground.job("coord_improve", "sample")
    assert (job.status, job.message) == (JobStatus.DONE, "nothing was found, so nothing was tried")
    assert ground.campaigns[0].status is CampaignStatus.NO_IMPROVEMENT
    assert not ground.items
