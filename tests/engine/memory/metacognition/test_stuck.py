"""Being stuck: measured on labelled traces, of which a third was held back, and what it leads to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.metacognition import MetaSettings
from engine.inquiry.notices import Rule, notice_of
from engine.memory.metacognition.stuck import POLLED_IN_VAIN, StuckSettingError, read_stuck, signs_of
from tests.engine.memory.metacognition.meta_desk import MetaDesk, World, achieve, read
from tests.engine.memory.metacognition.trace_notation import Telling, Trace, lines_of, traces
from tests.engine.memory.metacognition.virtual_time import in_virtual_time

ENOUGH = 0.9
REPEATS, SECONDS = 4, 60.0


@dataclass(frozen=True, slots=True)
class Verdict:
    trace: Trace
    kinds: tuple[str, ...]
    """What was said first; empty for nothing."""
    repeats: float = 0.0
    """Rounds of the loop after its first one, when it was said."""
    seconds: float = 0.0
    """Time since the end of the loop's first action."""

    @property
    def right(self) -> bool:
        return bool(self.kinds) == self.trace.stuck


def judge(trace: Trace) -> Verdict:
    telling = Telling()
    began = telling.now
    for line in lines_of(trace.text):
        if not telling.tell(line):
            continue
        if telling.actions == trace.begins:
            began = telling.ended
        signs = signs_of(telling.state.meta)
        if signs:
            rounds = (telling.actions - trace.begins + 1) / trace.period
            kinds = tuple(sign.kind for sign in signs)
            return Verdict(trace, kinds, rounds - 1, (telling.ended - began).total_seconds())
    return Verdict(trace, ())


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    return [judge(trace) for trace in traces()]


def test_the_traces_are_many_and_a_third_was_held_back(verdicts: list[Verdict]) -> None:
    assert len(verdicts) >= 100
    assert len({one.trace.name for one in verdicts}) == len(verdicts)
    for stuck in (True, False):
        side = [one.trace.held_out for one in verdicts if one.trace.stuck is stuck]
        assert 0.3 <= sum(side) / len(side) <= 0.4


def test_precision_and_recall(verdicts: list[Verdict], capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for name, held in (("tuned on", (False,)), ("held out", (True,)), ("all", (False, True))):
        part = [one for one in verdicts if one.trace.held_out in held]
        told = [one for one in part if one.kinds]
        stuck = [one for one in part if one.trace.stuck]
        hit = sum(one.trace.stuck for one in told)
        rows.append((name, len(part), len(stuck), hit / max(1, len(told)), hit / len(stuck)))
    with capsys.disabled():
        print("\n             traces  stuck  precision  recall")
        for name, count, stuck_count, precision, recall in rows:
            print(f"{name:<12} {count:>6} {stuck_count:>6} {precision:>10.3f} {recall:>7.3f}")
        for one in verdicts:
            if not one.right:
                side = "stuck" if one.trace.stuck else "honest"
                held_out = ", held out" if one.trace.held_out else ""
                print(f"  wrong: {one.trace.name!r} ({side}{held_out}): {one.kinds}")
    assert all(precision >= ENOUGH and recall >= ENOUGH for *_, precision, recall in rows)


def test_it_is_seen_within_four_repeats_or_a_minute(verdicts: list[Verdict]) -> None:
    late = [
        f"{one.trace.name}: {one.repeats:.1f} repeats, {one.seconds:.0f} s"
        for one in verdicts
        if one.trace.stuck and one.kinds and one.repeats > REPEATS and one.seconds > SECONDS
    ]
    early = [one.trace.name for one in verdicts if one.trace.stuck and one.kinds and one.repeats < 0]
    assert (late, early) == ([], [])


def test_the_sign_that_is_named_is_the_trace_s(verdicts: list[Verdict]) -> None:
    seen = [one for one in verdicts if one.trace.stuck and one.kinds]
    named = sum(one.trace.kind in one.kinds for one in seen)
    assert named / len(seen) >= 0.8, [
        (one.trace.name, one.trace.kind, one.kinds) for one in seen if one.trace.kind not in one.kinds
    ]


def test_polling_in_vain_is_honest_for_a_while_only() -> None:
    telling, polls = Telling(), 0
    telling.tell("run true => ok")
    while not signs_of(telling.state.meta):
        telling.tell("run gh run list => ok queued")
        telling.tell("run sleep 30 => ok")
        polls += 1
        assert polls <= 50
    assert polls > POLLED_IN_VAIN


def test_the_setting_is_read_strictly() -> None:
    assert [read_stuck({}), read_stuck({"stuck": "hold"})] == ["tell", "hold"]
    with pytest.raises(StuckSettingError, match='"tell", "hold" or "off"'):
        read_stuck({"stuck": True})


@pytest.mark.parametrize("setting", ["tell", "hold", "off"])
def test_an_agent_that_goes_in_a_circle_is_told_of_once_and_held_where_that_is_wanted(setting: str) -> None:
    in_virtual_time(_circle(setting))


async def _circle(setting: str) -> None:
    world = World()
    desk = MetaDesk(world, watches=True)
    desk.open(MetaSettings(enabled=False), meta={"stuck": setting})
    desk.fly(read("notes.txt"), achieve("look into it", 2))
    holds = setting == "hold"
    await desk.until(lambda s: s.run is RunState.PAUSED if holds else s.actions >= 5)
    await desk.agent.log.commit()
    told = [event for event in desk.events if event.kind == ev.StuckNoticed.kind]
    assert len(told) == (0 if setting == "off" else 1)
    if told:
        assert desk.state.meta.stuck is not None
        assert desk.state.meta.stuck.signs[0].kind == "repeated"
        notice = notice_of(told[0], ev.payload_of(told[0]), desk.state)
        assert notice is not None
        assert notice.rule is Rule.NEEDS_YOU
    if holds:
        assert desk.state.run_reason.startswith("STUCK: 3 times the same: read notes.txt")
        desk.do(cmd.Run)
        await desk.until(lambda s: s.run is RunState.PAUSED)
        seen = [bool(said.signs) for said in desk.payloads(ev.StuckNoticed)]
        assert seen == [True, False, True], "after the operator's look it is counted anew"
    await desk.close()
    await desk.replays()
