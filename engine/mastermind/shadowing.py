"""A shadow run: the candidate that waits runs beside what is there, on tasks that nobody chose it by.

Nothing in the workspace is changed by it, and it decides nothing: its figures are shown before the operator
lets the candidate go live. Source: steering spec §3 idea 13, story S5.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

from engine.domain.improvement import Proposal
from engine.domain.mastermind import Campaign, Candidate, Shadow
from engine.journal.blobs import BlobStore
from engine.mastermind.campaign import Parts
from engine.mastermind.files import Places
from engine.mastermind.foretelling import counts_of
from engine.mastermind.parts import JobRefused, NotJudged, Paying
from engine.mastermind.trees import laid
from engine.mastermind.verdicts import sound


async def shadow_run(
    campaign: Campaign, candidate: Candidate, parts: Parts, places: Places, blobs: BlobStore, scratch: Path
) -> Shadow:
    """Judge a candidate against the workspace as it is, on sealed tasks that are drawn for this.

    The seed follows from the campaign's and from how often this was done.

    Raises:
        JobRefused: files moved on since the difference was made, or nothing can be judged here.
        BlobError: a text of the candidate is gone.
    """
    component, comparer = campaign.component, parts.comparer
    assert component is not None
    maker = parts.maker(component)
    assert comparer is not None
    parts.prepare()
    await _unmoved(campaign, candidate, places)
    seed = random.Random(f"{campaign.seed} shadow {len(campaign.shadows) + 1}").randrange(2**63)
    before, after = scratch / "before", scratch / "after"
    try:
        await asyncio.to_thread(_emptied, scratch)
        roots = dict.fromkeys((*maker.roots(component), *component.paths))
        await asyncio.to_thread(places.copy_clean, roots, before)
        suite = await maker.make(component, before, seed)
        if isinstance(suite, Paying):
            suite.allow(_left(campaign))
        files = {
            path: None if blob is None else (await blobs.get(blob)).decode("utf-8", "surrogateescape")
            for path, blob in candidate.files.items()
        }
        await asyncio.to_thread(laid, before, after, files)
        verdict = await comparer.compare(
            before,
            after,
            component,
            Proposal(candidate.title, candidate.origin, files, answers=candidate.answers),
            suite,
            seed=seed,
            seconds=campaign.budget.seconds,
            sealed=True,
        )
    except NotJudged as lacking:
        raise JobRefused(f"{candidate.id} cannot be run as a shadow: {lacking}") from None
    finally:
        await asyncio.shield(asyncio.to_thread(places.discard, scratch))
    sealed = counts_of(suite).get("sealed", 0)
    usd = suite.paid() if isinstance(suite, Paying) else 0.0
    return Shadow(candidate.id, seed, sound(verdict), sealed, suite.key != campaign.suite, usd)


def _left(campaign: Campaign) -> float:
    """What is left of a campaign's budget for models, in USD."""
    left = campaign.budget.usd - campaign.usd
    if left <= 0:
        raise JobRefused(
            f"{campaign.id} is judged by a model, and nothing is left of ${campaign.budget.usd:g}"
        )
    return left


def _emptied(scratch: Path) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700, parents=True)


async def _unmoved(campaign: Campaign, candidate: Candidate, places: Places) -> None:
    """Refuse a candidate whose files are not as they were when its difference was made."""
    moved = [
        path
        for path, blob in sorted(candidate.before.items())
        if (await asyncio.to_thread(places.read, path)).digest != blob
    ]
    if moved:
        raise JobRefused(
            f"{', '.join(moved)} changed since the difference was made; campaign_resume {campaign.id} makes "
            "it anew"
        )
