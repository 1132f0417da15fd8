"""Asking a tree the checks of a suite, in boxes or by the suite itself, and reading what came of each."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.mastermind.judge.box import Box, Boxes, Told, shuffled
from engine.mastermind.judge.forked import encode
from engine.mastermind.judge.suite import Boxed, Check, Examining, Outcome, Report, Right

_REOPENED = 8
"""Boxes that one round of questions may cost; after that what is left has failed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one check in one tree."""

    report: Report
    told: Told = field(default_factory=Told)


@dataclass(slots=True)
class Round:
    """All that was asked of one tree in one go."""

    seen: dict[str, Seen] = field(default_factory=dict)
    said: str = ""
    """What its code printed, bounded."""
    tokens: tuple[str, ...] = ()
    """What stood in the decoys of its boxes."""
    places: tuple[str, ...] = ()
    """Where its boxes were."""
    processor_s: float = 0.0

    def outcome(self, check: str) -> Outcome:
        """What a check came to; missing when nobody asked."""
        seen = self.seen.get(check)
        return seen.report.outcome if seen else Outcome.MISSING


@dataclass(frozen=True, slots=True)
class Asker:
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
        reference: Round | None = None,
        decoy: Mapping[str, Any] | None = None,
    ) -> Round:
        """Ask all checks, each in a process of its own, in an order drawn by the seed.

        Args:
            tree: the directory that is asked.
            checks: what is asked.
            material: files that are laid over the tree.
            seed: for the order and the randomness inside; the same for both trees.
            reference: what the tree before said, for checks without an expected answer.
            decoy: wrong answers that lie about where a candidate may find them.
        """
        done = Round()
        todo = shuffled(list(checks), seed)
        if self.boxes is None:
            begun = time.process_time()
            for check in todo:
                done.seen[check.id] = Seen(await self._examined(tree, check, seed))
            done.processor_s = time.process_time() - begun
            return done
        suite: Boxed = self.suite
        for _ in range(_REOPENED):
            async with self.boxes.opened(tree, suite, material, decoy or {}, seed=seed) as box:
                done.tokens += (box.token,)
                done.places += (str(box.place),)
                while todo:
                    check = todo.pop(0)
                    if not await self._put(box, check, done, seed, reference):
                        break
            done.said += box.said
            if not todo:
                return done
        for check in todo:
            done.seen[check.id] = Seen(Report(check.id, Outcome.FAILS, "its boxes ended again and again"))
        return done

    async def pair(
        self,
        trees: Sequence[Path],
        checks: Sequence[Check],
        material: Mapping[str, bytes],
        *,
        seed: int,
        reference: Round,
        steps: bool,
    ) -> tuple[Round, ...]:
        """Ask two trees in turn, check by check, each in a box of its own; costs count.

        Who comes first with a check is drawn by the seed. It ends early where a box does.
        """
        if self.boxes is None:
            return tuple([await self.round(tree, checks, material, seed=seed) for tree in trees])
        done, rng = (Round(), Round()), random.Random(f"turns {seed}")
        async with AsyncExitStack() as kept:
            boxes = []
            for tree, one in zip(trees, done, strict=True):
                box = await kept.enter_async_context(
                    self.boxes.opened(tree, self.suite, material, {}, seed=seed)
                )
                one.tokens, one.places = (box.token,), (str(box.place),)
                boxes.append(box)
            for check in shuffled(list(checks), seed):
                for which in rng.sample((0, 1), 2):
                    if not await self._put(
                        boxes[which], check, done[which], seed, reference, measured=True, steps=steps
                    ):
                        return done
        return done

    async def _put(
        self,
        box: Box,
        check: Check,
        done: Round,
        seed: int,
        reference: Round | None,
        *,
        measured: bool = False,
        steps: bool = False,
    ) -> bool:
        """Put one question to a box; False when the box ended over it."""
        assert self.boxes is not None
        told = await box.ask(check, self.boxes.limits, seed=seed, steps=steps, measured=measured)
        done.processor_s += told.processor_s
        done.seen[check.id] = Seen(_report(check, told, reference), told)
        return not told.ended

    async def _examined(self, tree: Path, check: Check, seed: int) -> Report:
        assert isinstance(self.suite, Examining)
        try:
            return await self.suite.examine(tree, check, seed=seed)
        except Exception as error:  # noqa: BLE001 - a tree that cannot be examined has failed the check
            return Report(check.id, Outcome.FAILS, f"{type(error).__name__}: {error}")


def _report(check: Check, told: Told, reference: Round | None) -> Report:
    """The outcome of a check, decided where the candidate cannot reach."""
    if told.ended:
        limits = ("timeout", "memory", "processes", "disk", "output")
        kind = Outcome.FAILS if told.ended in limits else Outcome.MISSING
        return Report(check.id, kind, f"its box ended ({told.ended}) {told.problem}".strip())
    if told.late:
        return Report(check.id, Outcome.FAILS, "it took longer than it may, or said too much")
    if not told.said:
        if told.code == 0:
            return Report(check.id, Outcome.MISSING, "its process ended with 0 before it reported")
        how = f"signal {-told.code}" if told.code < 0 else f"exit code {told.code}"
        return Report(check.id, Outcome.FAILS, f"its process ended with {how}")
    return _of_test(check, told.said) if check.test else _of_calls(check, told, reference)


def _of_test(check: Check, said: Mapping[str, Any]) -> Report:
    phases = said.get("phases")
    phases = phases if isinstance(phases, dict) else {}
    text = str(said.get("text", ""))
    if "failed" in phases.values():
        return Report(check.id, Outcome.FAILS, text)
    if "skipped" in phases.values():
        return Report(check.id, Outcome.SKIPPED, text)
    if [phases.get(name) for name in ("setup", "call", "teardown")] == ["passed"] * 3:
        return Report(check.id, Outcome.HOLDS)
    return Report(check.id, Outcome.FAILS, text or "pytest found no such test")


def _of_calls(check: Check, told: Told, reference: Round | None) -> Report:
    answers = told.said.get("answers")
    if not isinstance(answers, list) or len(answers) != len(check.calls):
        return Report(check.id, Outcome.MISSING, "it gave no answers of the form that is due")
    answers = [one if isinstance(one, dict) else {} for one in answers]
    if check.expected:
        due = [right_answer(one) for one in check.expected]
        given = [{key: one[key] for key in ("value", "raises") if key in one} for one in answers]
    else:
        before = reference.seen.get(check.id) if reference else None
        due = list(before.report.answers) if before else answers
        given = answers
    for number, (one, right) in enumerate(zip(given, due, strict=False)):
        shared = {key: one.get(key) for key in one if key in right or key != "arguments"}
        if not same(shared, {key: right[key] for key in right if key in one or key != "arguments"}, check):
            text = f"call {number + 1} of {check.calls[number].target}: not the right answer"
            return Report(check.id, Outcome.FAILS, text, tuple(answers))
    if len(due) != len(given):
        return Report(check.id, Outcome.FAILS, "there is nothing to compare its answers with", tuple(answers))
    return Report(check.id, Outcome.HOLDS, "", tuple(answers))


def right_answer(right: Right) -> dict[str, Any]:
    """A right answer as the box would tell it."""
    if right.raises:
        return {"raises": right.raises}
    return {"value": json.loads(json.dumps(encode(right.value)))}


def same(one: Any, other: Any, check: Check) -> bool:
    """Whether two answers are the same, numbers within the check's tolerance."""
    if type(one) in (int, float) and type(other) in (int, float) and float in (type(one), type(other)):
        try:
            return math.isclose(one, other, rel_tol=check.tolerance, abs_tol=check.tolerance * 1e-3)
        except OverflowError:
            return False
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key], check) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(same(a, b, check) for a, b in zip(one, other, strict=True))
    return bool(one == other)
