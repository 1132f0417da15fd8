"""Story S5 of the steering spec, "Make it better, and prove it", in a real terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from tmux_terminal import NEEDS_TMUX, Terminal

from engine.core import campaigns as me
from engine.core.improvement import Campaign, CampaignStatus, MastermindState, Ruling
from engine.core.journal import MASTERMIND, Event
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.improve.state import EventStream
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.tier import JailRefusal, best_jail
from tests.engine.agent.engine_flight import journal_holds_together
from tests.engine.improve.cheats.grounds import MODULE, SUMS, TESTS
from tests.engine.improve.cheats.planted import DELETE, READ
from tests.engine.improve.planted import CAREFUL, GOOD
from tests.messages_server import Reply, Seen, object_call, serving

pytestmark = [*NEEDS_TMUX, pytest.mark.slow]

MODEL = "claude-sonnet-5-5"
SKILL, GOOD_SKILL = "plans/explorer.asl", "plans/steady.asl"
LONG_S = 240.0
ROOT = MODULE.rpartition("/")[0]
SPREAD = """

def spread(values):
    \"\"\"How far the values lie apart.\"\"\"
    return 0
"""
PROJECT = {
    MODULE: SUMS + SPREAD,
    f"{ROOT}/tests/test_sums.py": TESTS.replace("import clipped", "import spread, clipped")
    + "\n\ndef test_spread():\n    assert spread([1, 4]) == 3\n",
    f"{ROOT}/pyproject.toml": '[project]\nname = "sums"\n[tool.pytest.ini_options]\npythonpath = ["."]\n',
    ".pilothouse/held_out/sums/test_more.py": "from sums import clipped, spread\n\n\n"
    "def test_far_above():\n    assert clipped(90, -3, 7) == 7\n\n\n"
    + "\n\n".join(
        f"def test_wide_{at}():\n    assert spread({given}) == {right}\n"
        for at, (given, right) in enumerate([([5, 9, 2], 7), ([1, 1], 0), ([-3, 8], 11), ([2, 40], 38)])
    ),
}
"""What a small change mends, and what only a model would: with tests, and tests held out."""


def events(workspace: Path) -> list[Event]:
    """What Mastermind did, as it stands in the journal now."""

    async def of() -> list[Event]:
        store = await SqliteJournal.open(workspace, clock=SystemClock(), read_only=True)
        try:
            return await store.read(MASTERMIND)
        finally:
            await store.close()

    return asyncio.run(of())


def state(workspace: Path) -> MastermindState:
    return (
        EventStream.fold(events(workspace))
        if (workspace / ".pilothouse/journal.db").exists()
        else MastermindState()
    )


def campaign(workspace: Path, name: str = "k1") -> Campaign:
    return state(workspace).campaigns[name]


def judged(workspace: Path) -> int:
    """How many candidates were judged by now, those that were known not counted."""
    return len(state(workspace).verdicts)


def say(terminal: Terminal, line: str, *sees: str) -> None:
    """Type a line into the bar, from anywhere without a dialog."""
    terminal.keys(":")
    terminal.type(line)
    terminal.keys("Enter")
    terminal.shows(*sees)


def leave(terminal: Terminal) -> None:
    terminal.shows("esc close")
    terminal.keys("Escape")
    terminal.until(lambda: "esc close" not in terminal.screen, "no dialog")


def lay(workspace: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)


def test_a_skill_becomes_better_is_shown_as_a_shadow_goes_live_and_back(
    terminal: Terminal, tmp_path: Path
) -> None:
    workspace = tmp_path / "ws"
    lay(workspace, {SKILL: CAREFUL, GOOD_SKILL: GOOD})
    terminal.fly(f"--workspace {workspace}")
    terminal.shows("PAUSED", "pilot-1")
    say(terminal, "evolve --seed 3 the explorer plans ?", "nothing is done yet", "400 worlds of the explorer")
    terminal.shows("40 worlds", "160 worlds", "forecast", "none: no campaign", "at most 12 candidates")
    assert not state(workspace).jobs
    terminal.keys("Enter")
    terminal.shows("Campaign k1 on explorer-plans", "needs you", "40 work, 160 choose, 400 sealed")
    (found,) = campaign(workspace).candidates
    verdict = found.verdict
    assert verdict is not None
    assert verdict.gain is not None
    assert verdict.gain.low > 0
    terminal.shows(
        f"{verdict.gain.mean:+.3g} reasoning cycles saved [{verdict.gain.low:.3g}, ",
        "k1.1",
        "$0.00",
        "s shadow",
    )
    terminal.keys("Enter")
    terminal.shows("@quick +!reach(O)", "95 % from")
    terminal.keys("BSpace", "s")
    terminal.shows("shadow of k1.1: better on 400 fresh sealed tasks")
    assert (workspace / SKILL).read_text() == CAREFUL, "a shadow changes nothing"
    terminal.keys("a")
    terminal.shows("Apply k1.1", "shadow of k1.1: better")
    terminal.keys("y")
    terminal.shows("✓ applied")
    assert (workspace / SKILL).read_text() != CAREFUL
    terminal.keys("u")
    terminal.shows("↶ rolled back")
    assert (workspace / SKILL).read_text() == CAREFUL
    kinds = [event.kind for event in events(workspace)]
    assert kinds.index(me.RollbackBegun.kind) < kinds.index(me.RolledBack.kind)

    # The same seed finds the same, and pays for no judgement that there was.
    before = judged(workspace)
    leave(terminal)
    say(terminal, "evolve --seed 3 the explorer plans", "Campaign k2 on explorer-plans", "needs you")
    (again,) = campaign(workspace, "k2").candidates
    assert (again.files, again.again, judged(workspace)) == (found.files, found.id, before)
    terminal.keys("d")
    terminal.shows("Decline k2.1")
    terminal.keys("y")
    terminal.shows("declined")
    leave(terminal)
    say(terminal, "evolve --seed 3 the steady plans", "nothing was found, so nothing was tried")
    assert campaign(workspace, "k3").status is CampaignStatus.NO_IMPROVEMENT
    assert not campaign(workspace, "k3").application
    terminal.keys("C-q")
    assert terminal.ends() == 0
    asyncio.run(journal_holds_together(workspace))


class Thinker:
    """A model that would be praised for what it did not do: it knows by heart, erases, spies and skips."""

    def __init__(self) -> None:
        self.asked = 0

    def answer(self, seen: Seen) -> Reply:
        self.asked += 1
        text = (SUMS + SPREAD).replace(
            "value > high:\n        return low", "value > high:\n        return high"
        )
        by_heart = text.replace("return 0", "return {(1, 4): 3}.get(tuple(values), 0)")
        right = text.replace("return 0", "return max(values, default=0) - min(values, default=0)")
        wrong = [("quiet", right + DELETE), ("by heart", by_heart), ("well read", right + READ)]
        changes = [
            {"title": title, "why": "", "files": [{"path": MODULE, "text": text}]} for title, text in wrong
        ]
        return object_call("propose_changes", changes=changes if self.asked == 1 else [])


def rejected(found: Campaign) -> Sequence[tuple[str, ...]]:
    return [one.verdict.cheats for one in found.candidates if one.verdict and one.verdict.cheats]


@pytest.mark.skipif(isinstance(best_jail(SandboxPolicy()), JailRefusal), reason="no jail here")
def test_cheats_are_shown_and_neither_stop_nor_kill_is_paid_for_twice(
    terminal: Terminal, tmp_path: Path
) -> None:
    workspace, thinker = tmp_path / "ws", Thinker()
    lay(workspace, PROJECT)
    with serving(thinker.answer) as url:
        terminal.environment = {"ANTHROPIC_BASE_URL": url, "PILOTHOUSE_MODEL": MODEL}
        terminal.fly(f"--workspace {workspace}")
        terminal.shows("PAUSED", "pilot-1")
        say(
            terminal,
            "coord_improve --seed 7 --usd 5 sums ?",
            "7 test functions",
            "5 held-out",
            "$5.00 for models",
        )
        terminal.keys("Enter")
        terminal.until(lambda: "k1" in state(workspace).campaigns, "it is begun", LONG_S)
        say(terminal, "campaign", "Campaign k1 on sums", "x cancel")
        # Stop, and go on.
        terminal.until(
            lambda: judged(workspace) and campaign(workspace).kept, "the model's answer", LONG_S, every=0.1
        )
        terminal.keys("x")
        terminal.shows("■ cancelled", "r resume")
        asked, before = thinker.asked, dict(state(workspace).verdicts)
        terminal.keys("r")
        terminal.until(lambda: judged(workspace) > len(before), "another judgement", LONG_S, every=0.3)
        # Pull the plug, and go on.
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.ends()
        paid, before = campaign(workspace).usd, dict(state(workspace).verdicts)
        terminal.close()
        terminal.fly(f"--workspace {workspace}")
        terminal.shows("PAUSED", "pilot-1")
        terminal.keys("C")
        terminal.shows("Campaign k1 on sums", "interrupted", "r resume")
        terminal.keys("r")
        terminal.until(
            lambda: campaign(workspace).status is CampaignStatus.NEEDS_OPERATOR, "its end", LONG_S, every=0.3
        )
        found = campaign(workspace)
        assert thinker.asked == asked + 1 == 2, "it hears once what the judge said; no answer is paid twice"
        assert paid < found.usd < 3 * paid
        assert {key: state(workspace).verdicts[key] for key in before} == before
        assert [one.id for one in found.candidates] == [f"k1.{at}" for at in range(1, 5)], "nothing twice"
        assert len(rejected(found)) == 3, [one.verdict for one in found.candidates]
        terminal.shows("rejected", "better", "└ k1.4")
        terminal.keys("End")
        terminal.shows("cheats", "read the held-out set", "@@")
        terminal.keys("C-q")
        assert terminal.ends() == 0
    assert (workspace / MODULE).read_text() == SUMS + SPREAD
    assert {one.verdict.ruling for one in found.candidates if one.verdict} >= {Ruling.BETTER, Ruling.REJECTED}
    asyncio.run(journal_holds_together(workspace))
