"""Asks a tree the checks of a suite, in boxes or by the suite itself, and reads the results."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from engine.improve.judge.box import Box, BoxAnswer, Boxes, shuffled
from engine.improve.judge.fork_child import encode
from engine.improve.ports import BoxedSuite, Check, DataSuite, ExpectedAnswer, Outcome, Report
from engine.value import dataclass, field, replace

TOLERANCE = 1e-9
"""By how much numbers in answers may differ, relative to the larger."""
_LATE = "TimeoutError"
_REOPENED = 8
"""Boxes that one round of questions may cost; after that what is left has failed."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check in one tree."""

    report: Report
    told: BoxAnswer = field(default_factory=BoxAnswer)


@dataclass(slots=True)
class RoundResult:
    """All that was asked of one tree in one go."""

    seen: dict[str, CheckResult] = field(default_factory=dict)
    said: str = ""
    """What its code printed, bounded."""
    tokens: tuple[str, ...] = ()
    """What stood in the decoys of its boxes."""
    places: tuple[str, ...] = ()
    """Where its boxes were."""
    processor_s: float = 0.0

    def outcome(self, check: str) -> Outcome:
        """The outcome of a check; missing when it was not asked."""
        seen = self.seen.get(check)
        return seen.report.outcome if seen else Outcome.MISSING


@dataclass(frozen=True, slots=True)
class SuiteAsker:
    """Asks trees one suite's checks."""

    suite: Any
    boxes: Boxes | None
    """None where the suite runs no candidate code."""

    async def round(
        self,
        tree: Path,
        checks: Sequence[Check],
        material: Mapping[str, bytes],
        *,
        seed: int,
        decoy: Mapping[str, Any] | None = None,
    ) -> RoundResult:
        """Ask all checks, each in a process of its own, in an order drawn by the seed.

        Checks without an expected answer hold, whatever the answer; see `against`.

        Args:
            tree: the directory that is asked.
            checks: what is asked.
            material: files that are laid over the tree.
            seed: for the order and the randomness inside; the same for both trees.
            decoy: wrong answers that lie about where a candidate may find them.
        """
        done = RoundResult()
        todo = shuffled(list(checks), seed)
        if self.boxes is None:
            begun = time.process_time()
            for check in todo:
                done.seen[check.id] = CheckResult(await self._examined(tree, check, seed))
            done.processor_s = time.process_time() - begun
            return done
        suite: BoxedSuite = self.suite
        ended = 0
        while todo and ended < _REOPENED:
            ended, asked = ended + 1, 0
            async with self.boxes.opened(tree, suite, material, decoy or {}, seed=seed) as box:
                done.tokens += (box.token,)
                done.places += (str(box.place),)
                while todo:
                    check = todo.pop(0)
                    if not await self._put(box, check, done, seed, None):
                        if asked and done.seen[check.id].told.ended == "timeout":
                            todo.insert(0, check)  # the time of a box is over, and not that of a check
                            ended -= 1
                        break
                    asked += 1
            done.said += box.said
        for check in todo:
            done.seen[check.id] = CheckResult(
                Report(check.id, Outcome.FAILS, "its boxes ended again and again")
            )
        return done

    def against(self, done: RoundResult, checks: Sequence[Check], reference: RoundResult) -> RoundResult:
        """The same, with the answers of the tree before as the right ones where a check expects none."""
        if self.boxes is None:
            return done
        known = {check.id: check for check in checks if check.calls and not check.expected}
        again = {
            name: CheckResult(_report(check, done.seen[name].told, reference), done.seen[name].told)
            for name, check in known.items()
            if name in done.seen
        }
        return replace(done, seen={**done.seen, **again})

    async def pair(
        self,
        trees: Sequence[Path],
        checks: Sequence[Check],
        material: Mapping[str, bytes],
        *,
        seed: int,
        reference: RoundResult,
    ) -> tuple[RoundResult, ...]:
        """Ask two trees in turn, check by check, each in a box of its own; costs count.

        Who comes first with a check is drawn by the seed. It ends early where a box does.
        """
        if self.boxes is None:
            return tuple([await self.round(tree, checks, material, seed=seed) for tree in trees])
        done, rng = (RoundResult(), RoundResult()), random.Random(f"turns {seed}")
        async with AsyncExitStack() as kept:
            opened = [self.boxes.opened(tree, self.suite, material, {}, seed=seed) for tree in trees]
            entered = await asyncio.gather(*map(kept.enter_async_context, opened), return_exceptions=True)
            boxes = [_or_raised(task) for task in entered]
            for box, result in zip(boxes, done, strict=True):
                result.tokens, result.places = (box.token,), (str(box.place),)
            for check in shuffled(list(checks), seed):
                for which in rng.sample((0, 1), 2):
                    if not await self._put(boxes[which], check, done[which], seed, reference, measured=True):
                        return done
        return done

    async def _put(
        self,
        box: Box,
        check: Check,
        done: RoundResult,
        seed: int,
        reference: RoundResult | None,
        *,
        measured: bool = False,
    ) -> bool:
        """Put one question to a box; False when the box ended over it."""
        assert self.boxes is not None
        answer = await box.ask(check, self.boxes.limits, seed=seed, measured=measured)
        done.processor_s += answer.processor_s
        done.seen[check.id] = CheckResult(_report(check, answer, reference), answer)
        return not answer.ended

    async def _examined(self, tree: Path, check: Check, seed: int) -> Report:
        assert isinstance(self.suite, DataSuite)
        try:
            return await self.suite.examine(tree, check, seed=seed)
        except Exception as error:  # noqa: BLE001 - a tree that cannot be examined has failed the check
            return Report(check.id, Outcome.FAILS, f"{type(error).__name__}: {error}")


def _or_raised(box: Any) -> Box:
    if isinstance(box, BaseException):
        raise box
    assert isinstance(box, Box)
    return box


def _report(check: Check, answer: BoxAnswer, reference: RoundResult | None) -> Report:
    """The outcome of a check, decided where the candidate cannot reach."""
    if failure := answer.failure:
        limits = ("timeout", "memory", "processes", "disk", "output")
        ended = answer.ended not in limits if answer.ended else not answer.late and answer.code == 0
        return Report(check.id, Outcome.MISSING if ended else Outcome.FAILS, failure)
    return _of_test(check, answer.said) if check.test else _of_calls(check, answer, reference)


def _of_test(check: Check, result: Mapping[str, Any]) -> Report:
    tests = result.get("tests")
    entries = tests.values() if isinstance(tests, dict) else ()
    results = {test_outcome(entry.get("phases")) for entry in entries if isinstance(entry, dict)}
    text = str(result.get("text", ""))
    if results & {"failed", "error"} or not results:
        return Report(check.id, Outcome.FAILS, text or "pytest found no such test")
    if results == {"passed"}:
        return Report(check.id, Outcome.HOLDS)
    return Report(check.id, Outcome.SKIPPED, text)


def test_outcome(phases: Any) -> str:
    """`passed`, `failed`, `error`, `skipped` or `xfailed`, by the outcomes of a test's phases."""
    phases = phases if isinstance(phases, dict) else {}
    if "failed" in phases.values():
        return "failed" if phases.get("call") == "failed" else "error"
    for result in ("xfailed", "skipped"):
        if result in phases.values():
            return result
    whole = [phases.get(name) for name in ("setup", "call", "teardown")] == ["passed"] * 3
    return "passed" if whole else "error"


def _of_calls(check: Check, answer: BoxAnswer, reference: RoundResult | None) -> Report:
    answers = answer.said.get("answers")
    if not isinstance(answers, list) or len(answers) != len(check.calls):
        return Report(check.id, Outcome.MISSING, "it gave no answers of the form that is due")
    answers = [item if isinstance(item, dict) else {} for item in answers]
    if check.expected:
        given: list[dict[str, Any]] = [
            {key: item[key] for key in ("value", "raises") if key in item} for item in answers
        ]
        due = [expected_answer(right) for right in check.expected]
    else:
        before = reference.seen.get(check.id) if reference else None
        given, due = answers, list(before.report.answers) if before else answers
    if check.drawn:
        return _compared(check, given, due)
    for number, (mine, right) in enumerate(zip(given, due, strict=False)):
        # What a call did to its arguments is compared where both sides say it.
        beside = ("arguments", "shares")
        mine_shared = {key: mine[key] for key in mine if key in right or key not in beside}
        right_shared = {key: right[key] for key in right if key in mine or key not in beside}
        if not same_answer(mine_shared, right_shared):
            text = f"call {number + 1} of {check.calls[number].target}: not the right answer"
            return Report(check.id, Outcome.FAILS, text, tuple(answers))
    if len(due) != len(given):
        return Report(check.id, Outcome.FAILS, "there is nothing to compare its answers with", tuple(answers))
    return Report(check.id, Outcome.HOLDS, "", tuple(answers))


_SHOWN = 160


def _compared(check: Check, given: list[dict[str, Any]], due: list[dict[str, Any]]) -> Report:
    """Whether drawn calls did what they did before."""
    for call, mine, right in zip(check.calls, given, due, strict=False):
        if _LATE in right.values() or right.get("raises") in check.crashes:
            continue
        if check.effects or "raises" in right:
            meant = right.get("raises") in check.raises
            same = check.effects or (mine.get("raises") == right["raises"] if meant else "raises" in mine)
            names: tuple[str, ...] = ("shares", *(("arguments",) if "value" in right else ()))
        else:
            same, names = True, ("value", "arguments", "shares", "raises")
        differ = [name for name in names if not same_behaviour(mine.get(name), right.get(name))]
        if not same or differ:
            words = json.dumps([call.args, mine.get("value", mine.get("raises"))], default=repr)[1:-1]
            named = {"arguments": "its arguments", "shares": "what it shares"}
            what = named.get("".join(differ), "")
            what = f"{what} changed since".lstrip() if call.again else what
            text = f"{call.target} with {words[:_SHOWN]} {what}".rstrip()
            return Report(check.id, Outcome.FAILS, text, tuple(given))
    return Report(check.id, Outcome.HOLDS, "", tuple(given))


def expected_answer(right: ExpectedAnswer) -> dict[str, Any]:
    """A right answer as the box would tell it."""
    if right.raises:
        return {"raises": right.raises}
    return {"value": json.loads(json.dumps(encode(right.value)))}


def same_behaviour(given: Any, other: Any) -> bool:
    """Whether two encoded values are the same and of the same types, floats within a tolerance."""
    if type(given) is not type(other):
        return False
    if isinstance(given, dict):
        return list(given) == list(other) and all(same_behaviour(given[key], other[key]) for key in given)
    if isinstance(given, list):
        return len(given) == len(other) and all(map(same_behaviour, given, other))
    return same_answer(given, other)


def same_answer(given: Any, other: Any) -> bool:
    """Whether two answers are the same, numbers within a tolerance."""
    if type(given) in (int, float) and type(other) in (int, float) and float in (type(given), type(other)):
        try:
            return math.isclose(given, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE * 1e-3)
        except OverflowError:
            return False
    if type(given) is not type(other):
        return False
    if isinstance(given, dict):
        return given.keys() == other.keys() and all(same_answer(given[key], other[key]) for key in given)
    if isinstance(given, list):
        return len(given) == len(other) and all(same_answer(a, b) for a, b in zip(given, other, strict=True))
    return bool(given == other)
