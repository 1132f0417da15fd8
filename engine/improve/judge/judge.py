"""The judge: two trees, a proposal and a suite in, a verdict out.

In this order, and no further than it has to go: what changes is looked at (`changes`); both trees are asked
what may be seen, then what is sealed, with canaries among it (`questions`); what the candidate did meanwhile
is looked at (`violations`); costs are taken in pairs (`measurement`). REJECTED comes before BROKEN,
BROKEN before BETTER, and without anything shown it is NO_BETTER.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.core.improvement import Component, Proposal, Ruling, Verdict
from engine.core.offload import in_thread
from engine.improve.judge.box import BoxError, Boxes, files_of, material_of
from engine.improve.judge.case import Case, JudgeBudget, set_apart, take_outcomes, unshown, verdict_of
from engine.improve.judge.changes import change_violations
from engine.improve.judge.measurement import FEWEST, answering_s, hidden_work, measure_pairs, measured_gain
from engine.improve.judge.questions import RoundResult, SuiteAsker
from engine.improve.judge.violations import (
    Canaries,
    canaries,
    detect_violations,
    memorised_families,
    passed_canaries,
    used_decoys,
)
from engine.improve.ports import (
    ASKED_AGAIN,
    VISIBLE,
    BoxedSuite,
    Check,
    DataSuite,
    DrawingSuite,
    Outcome,
    Split,
    Suite,
)
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.value import replace

_KEPT = 32
"""Rounds that are remembered: a candidate that is built upon is the tree before of the next."""
_REPEATED = 24
"""Checks that are asked again in all, each at least once: many that change at once are no chance."""
_SLOWER, _SLOWER_S = 4, 0.015
"""Times what drawn calls took before, and seconds more, from which they are much slower."""


class Judge:
    """Judges candidates against what is there.

    Args:
        store: a directory for boxes while they are used and for the log, where no candidate can reach; made,
            with mode 0700.
        policy: gives the operator's policy, which the boxes tighten; the network is off whatever it says.
        at_most: a firmer tier is not used.
    """

    def __init__(
        self, store: Path, policy: Callable[[], SandboxPolicy] = SandboxPolicy, *, at_most: Tier = Tier.FULL
    ) -> None:
        self.store, self.at_most = store, at_most
        self.policy, self._current_policy = policy(), policy
        self._known: dict[tuple[object, ...], RoundResult] = {}

    def prepare(self) -> None:
        """Hold programs by the present policy from now on; results under another one are forgotten."""
        policy = self._current_policy()
        if policy != self.policy:
            self.policy = policy
            self._known.clear()

    async def compare(
        self,
        before: Path,
        after: Path,
        component: Component,
        proposal: Proposal,
        suite: Suite,
        *,
        seed: int,
        seconds: float | None = None,
        sealed: bool = True,
        allow: bool = False,
        budget: JudgeBudget | None = None,
    ) -> Verdict:
        """Judge a candidate.

        Args:
            before: a directory that stands for the workspace's, with all files that the component needs.
            after: the same with the candidate's files.
            component: its `paths` may change and no others.
            proposal: what the candidate says it is.
            suite: what is asked.
            seed: for order, canaries and randomness; the same seed gives the same verdict where the measure
                is deterministic.
            seconds: processor time that it may take; None takes the budget's.
            sealed: False asks only what may be seen, to choose among candidates; that decides nothing.
            allow: whether it may reach for files, programs, the network and the like, more than before.
            budget: what else it may cost.

        Raises:
            BoxError: no candidate code can be run here; the message says what is missing.
        """
        budget = budget or JudgeBudget()
        budget = budget if seconds is None else replace(budget, processor_s=seconds)
        self.store.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.store.chmod(0o700)
        asker = self._asker(suite, budget)
        case = Case(before, after, suite, seed, budget, asker, sealed=sealed, allow=allow)
        for tree in (before, after):
            case.digests[tree] = await asyncio.to_thread(_digest, tree)
        case.changes, violations = await asyncio.to_thread(
            change_violations, before, after, component, proposal, suite.owns
        )
        case.breaches += violations
        begun = time.monotonic()
        if not violations and not case.changes:
            verdict = Verdict(Ruling.NO_BETTER, ("it changes nothing",))
        else:
            if not violations:
                await self._asked(case)
            verdict = verdict_of(case)
        verdict = replace(verdict, seconds=round(case.processor_s, 3))
        await asyncio.to_thread(self._log, component, proposal, case, verdict, time.monotonic() - begun)
        return verdict

    def _asker(self, suite: Suite, budget: JudgeBudget) -> SuiteAsker:
        if isinstance(suite, BoxedSuite):
            return SuiteAsker(suite, Boxes(self.store, self.policy, budget.limits, self.at_most))
        if not isinstance(suite, DataSuite):
            raise BoxError("the suite neither says what belongs into a box nor examines a tree by itself")
        return SuiteAsker(suite, None)

    async def _asked(self, case: Case) -> None:
        """Ask both trees, until something is decided."""
        await self._split(case, VISIBLE)
        if case.breaches or case.broken:
            return
        if case.sealed:
            seed = f"{case.seed} {case.digests[case.after]}"
            if isinstance(case.suite, DrawingSuite):
                case.drawn = [*await in_thread(case.suite.drawn, case.before, case.after, seed)]
            await self._split(case, (Split.SEALED,))
            case.breaches += memorised_families(case.old, case.new, case.checks, case.changes)
            if isinstance(case.suite, DrawingSuite) and case.doubtful and not unshown(case, backed=True):
                boxes = case.asker.boxes
                case.backed = await case.suite.backed(boxes, case.before, case.after, case.mended, seed)
        chosen = not case.sealed and bool(case.mended)
        if not (case.breaches or case.broken or chosen or unshown(case, case.backed)):
            await self._measure(case, (Split.SEALED,) if case.sealed else VISIBLE)

    async def _split(self, case: Case, splits: tuple[Split, ...]) -> None:
        """Ask the checks of some splits, with canaries; ask again where an outcome is another one."""
        checks = _checks(case, splits)
        if not checks:
            return
        case.material, birds, decoy = await in_thread(_laid, case, checks, splits)
        asked = [*checks, *birds.fails, *birds.holds]
        old, new = await self._both(case, asked, case.seed, decoy)
        case.references[splits] = old
        new = case.asker.against(new, asked, old)
        case.breaches += detect_violations(old, new, self.store, case.suite.owns)
        case.breaches += passed_canaries(old, new, birds.fails)
        case.breaches += used_decoys(old, new, checks, decoy)
        case.checks += checks
        for check in checks:
            case.old[check.id], case.new[check.id] = old.outcome(check.id), new.outcome(check.id)
            case.texts[check.id] = new.seen[check.id].report.text
        if not case.breaches:
            await self._disguised(case, [check for check in checks if check.drawn], old, new)
            await self._again(case, checks, old)
        set_apart(case, checks)

    async def _both(
        self, case: Case, asked: Sequence[Check], seed: int, decoy: Mapping[str, Any]
    ) -> tuple[RoundResult, RoundResult]:
        """What both trees say, side by side where the suite runs them in boxes."""
        old, new = (self._round(case, tree, asked, seed, decoy) for tree in (case.before, case.after))
        if case.asker.boxes is None:
            return await old, await new
        tasks = [asyncio.ensure_future(result) for result in (old, new)]
        try:
            first, second = await asyncio.gather(*tasks)
            return first, second
        finally:
            for task in tasks:
                if not task.cancelling():  # a second time would cut off what it takes away
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _round(
        self, case: Case, tree: Path, asked: Sequence[Check], seed: int, decoy: Mapping[str, Any]
    ) -> RoundResult:
        """What a tree says; a tree with the same files is asked the same once."""
        names = hash(repr(asked))  # drawn checks have the same ids with every candidate
        laid = hash(frozenset(case.material.items()))
        key = (case.digests[tree], case.suite.key, laid, names, seed, bool(decoy), case.budget.limits)
        done = self._known.pop(key, None)
        if done is None:
            done = await case.asker.round(tree, asked, case.material, seed=seed, decoy=decoy)
            case.processor_s += done.processor_s
        self._known[key] = done
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return done

    async def _disguised(
        self, case: Case, checks: Sequence[Check], reference: RoundResult, new: RoundResult
    ) -> None:
        """Ask the candidate what was drawn a second time, elsewhere, at another time and in another order."""
        if checks:
            done = await self._round(case, case.after, checks, case.seed + 104_729, {})
            done = case.asker.against(done, checks, reference)
            for check in checks:
                rounds = (reference, new, done)
                was, *now = (answering_s(results.seen[check.id].told) for results in rounds)
                if done.outcome(check.id) is not Outcome.HOLDS:
                    case.new[check.id] = done.outcome(check.id)
                    case.texts[check.id] = done.seen[check.id].report.text
                elif not check.effects and min(now) > _SLOWER * was + _SLOWER_S:
                    case.new[check.id] = Outcome.FAILS
                    case.texts[check.id] = (
                        f"{check.family} takes {min(now) * 1000:.0f} ms, not {was * 1000:.0f}"
                    )

    async def _again(self, case: Case, checks: Sequence[Check], reference: RoundResult) -> None:
        """Take out what does not come out the same each time in the tree before."""
        changed = [check for check in checks if case.old[check.id] is not case.new[check.id]]
        times = max(1, min(case.budget.again, _REPEATED // max(1, len(changed)))) if case.sealed else 1
        for number in range(times if changed else 0):
            at = case.seed + ASKED_AGAIN * (number + 1)
            rounds = await self._both(case, changed, at, {})
            old, new = (case.asker.against(repeated, changed, reference) for repeated in rounds)
            for check in list(changed):
                first, was = check.id, case.old[check.id]
                if old.outcome(first) is not was or (
                    was is Outcome.FAILS and new.outcome(first) is not Outcome.HOLDS
                ):
                    case.unsteady.append(first)
                    case.old.pop(first), case.new.pop(first)
                    changed.remove(check)

    async def _measure(self, case: Case, splits: tuple[Split, ...]) -> None:
        """Take costs in pairs on what the candidate has not seen."""
        measure = case.suite.measure
        checks = [check for check in _checks(case, splits) if check.measured]
        checks = [check for check in checks if case.old.get(check.id) is Outcome.HOLDS]
        if measure is None or not checks:
            return
        case.material, _, _ = await in_thread(_laid, case, checks, splits)
        reference, rounds, most = case.references[splits], case.budget.rounds, case.budget.most
        if case.mended or not case.sealed:  # the gain is reported, and decides little
            rounds = most = min(rounds, FEWEST)
        measured = await measure_pairs(
            case.asker, case.before, case.after, checks, case.material, measure,
            seed=case.seed, rounds=rounds, most=most, reference=reference,
            processor_s=max(1.0, case.budget.processor_s - case.processor_s),
        )  # fmt: skip
        case.processor_s += measured.processor_s
        for old, new in zip(measured.before, measured.after, strict=True):
            case.breaches += detect_violations(old, new, self.store, case.suite.owns)
        case.breaches += hidden_work(measured, checks)
        take_outcomes(case, measured, checks)
        case.gain = await in_thread(measured_gain, measured, checks, measure)

    def _log(
        self, component: Component, proposal: Proposal, case: Case, verdict: Verdict, seconds: float
    ) -> None:
        """One line for each judgement, in the judge's own place."""
        line = {
            "component": component.id,
            "proposal": proposal.title,
            "origin": proposal.origin,
            "suite": case.suite.key,
            "seed": case.seed,
            "ruling": verdict.ruling,
            "reasons": verdict.reasons,
            "cheats": verdict.cheats,
            "asked": len(case.new),
            "seconds": round(seconds, 3),
        }
        end = os.open(self.store / "log.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(end, json.dumps(line).encode() + b"\n")
        finally:
            os.close(end)


def _digest(tree: Path) -> str:
    """One hash over what of a tree would be copied into a box."""
    digest = hashlib.sha256()
    for path, status in files_of(tree):
        if stat.S_ISREG(status.st_mode):
            held = hashlib.sha256((tree / path).read_bytes()).hexdigest()
            digest.update(f"{path}\0{held}\0{status.st_mode & 0o100}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _checks(case: Case, splits: tuple[Split, ...]) -> list[Check]:
    drawn = case.drawn if Split.SEALED in splits else []
    return [*(check for split in splits for check in case.suite.checks(split)), *drawn]


def _laid(
    case: Case, checks: Sequence[Check], splits: tuple[Split, ...]
) -> tuple[dict[str, bytes], Canaries, dict[str, Any]]:
    """What goes into the boxes for some splits: material, canaries in it, and wrong answers as a decoy."""
    if not isinstance(case.suite, BoxedSuite):
        return {}, Canaries({}, (), ()), {}
    splits_wanted = VISIBLE if splits == VISIBLE else (*VISIBLE, Split.SEALED)
    material = material_of(case.suite, splits_wanted)
    # The test files that lie in the tree itself, as they were before.
    names = {check.test.partition("::")[0] for check in checks if check.test}
    paths = {os.path.normpath(os.path.join(case.suite.root, name)) for name in names}  # noqa: PTH118
    files = {path: case.before / path for path in sorted(paths) if not path.startswith(("..", "/"))}
    tests = {path: file.read_bytes() for path, file in files.items() if file.is_file()}
    birds = canaries(checks, tests | material, case.suite.root, case.seed)
    rng = random.Random(f"decoy {case.seed}")
    decoy = {check.id: rng.randint(10**8, 10**9) for check in checks if check.calls}
    return material | dict(birds.material), birds, decoy
