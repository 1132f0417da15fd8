"""A campaign: audit, proposals, candidates, judging, and the candidate that is put before the operator.

Candidates are chosen by what may be seen, and one that looks better is decided on by what is sealed. A better
one is built upon: the next proposals start from its files, so that several defects are mended one after the
other. The candidate that the operator sees is the whole difference to the workspace, judged once more as a
whole. Verdicts are known by the hash of tree, candidate and suite and are not given again, so that a campaign
that was cut off continues without paying twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import operator
import random
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.core import campaigns as me
from engine.core.budgets import SpendingLimits
from engine.core.improvement import (
    Campaign,
    CampaignStatus,
    Candidate,
    Component,
    Finding,
    Proposal,
    Ruling,
    Verdict,
)
from engine.core.journal import BlobError, canonical
from engine.core.text import clean, clean_line
from engine.improve.campaigns.files import (
    copy_with_files,
    decode_answer,
    encode_answer,
    is_declared,
    proposal_key,
    texts_of,
    tree_difference,
    tree_digest,
    without_changes,
)
from engine.improve.campaigns.parts import CampaignParts
from engine.improve.campaigns.report import (
    cleaned_verdict,
    count_checks,
    is_promising,
    judged_better,
    verdict_figures,
)
from engine.improve.judge.box import tree_contents
from engine.improve.ports import (
    JobRefused,
    NothingProposed,
    NotJudged,
    PaidSuite,
    Progress,
    ProposalRequest,
    Proposer,
    Reflecting,
    Suite,
    SuiteMaker,
    Variant,
)
from engine.improve.search.trial_suite import UNPAID

ROUNDS = 8
"""How often a campaign builds on what it found better."""


_MARKS = operator.attrgetter("key", "parent", "title", "origin")
"""What candidates have in common that are the same."""


@dataclass(slots=True)
class CampaignRun:
    """One campaign under way.

    Its trees lie in a scratch directory of its own.
    """

    _parts: CampaignParts
    _id: str
    _progress: Progress
    _scratch: Path = Path()
    _suite: Suite | None = None
    _base: Path = Path()
    """The tree that is built upon."""
    _parent: Candidate | None = None
    """The candidate that it is; None for the workspace as it is."""
    _tried: set[tuple[object, ...]] = field(default_factory=set)
    _judged: int = 0
    """Candidates that this run judged, or that were judged before."""
    _earlier: list[Candidate] = field(default_factory=list)
    """Those from before it was cut off; what is the same again is resumed, and not made anew."""
    _unjudged: str = ""
    """Why a candidate could not be judged; empty where all were."""
    _silent: str = ""
    """Why a proposer had nothing to propose."""

    def __post_init__(self) -> None:
        self._earlier = list(self._campaign.candidates)

    @property
    def _campaign(self) -> Campaign:
        return self._parts.stream.state.campaigns[self._id]

    @property
    def _component(self) -> Component:
        return self._campaign.component

    async def run(self) -> tuple[Finding, ...]:
        """Run all stages; how it ended is the campaign's status.

        Returns:
            The findings that are left, with the candidate that waits for the operator or without one.

        Raises:
            JobRefused: the component cannot be judged.
            AuditUnavailable: no audit could be made.
            asyncio.CancelledError: it was cut off; its status says so.
        """
        try:
            await self._parts.stream.commit()
            async with self._parts.trees(self._component, self._id) as (maker, self._scratch, lacks):
                if lacks:
                    text = f"the copy lacks {len(lacks)} links or large files: {', '.join(lacks[:5])}"
                    await self._stage(CampaignStatus.AUDITING, text)
                return await self._carried_through(maker, self._scratch / "now")
        except asyncio.CancelledError:
            await asyncio.shield(self._stage(CampaignStatus.CANCELLED, "it was cancelled"))
            raise
        except Exception as error:
            await self._stage(CampaignStatus.FAILED, f"{type(error).__name__}: {error}")
            raise

    async def _carried_through(self, maker: SuiteMaker, before: Path) -> tuple[Finding, ...]:
        findings = left = await self._audit(before)
        await self._parts.stream.write(me.CampaignFound(campaign=self._id, findings=findings))
        budget = self._campaign.budget
        try:
            suite = self._suite = await maker.make(self._component, before, self._campaign.seed)
            pays = isinstance(suite, PaidSuite) and suite.pays
            lacking = UNPAID if pays and not (budget.usd or budget.tokens) else ""
        except NotJudged as error:
            lacking = str(error)
        if lacking:
            await self._stage(CampaignStatus.NO_IMPROVEMENT, f"no improvement shown: {lacking}")
            return findings
        split = me.CampaignSplit(campaign=self._id, sets=count_checks(suite), suite=suite.key)
        await self._parts.stream.write(split)
        self._base = before
        for number in range(1, ROUNDS + 1):
            better = await self._round(number, left)
            if better is None:
                break
            self._parent, self._base = better, self._scratch / better.id
            left = await self._audit(self._base)
            if number < ROUNDS and self._room():
                await self._stage(CampaignStatus.PROPOSING, f"going on from {better.id}")
        chosen = self._parent
        whole = await self._whole(before, chosen) if chosen is not None else None
        if whole is None:
            await self._ended_without()
            return findings
        message = f"{whole.id} is better: {verdict_figures(whole.verdict)}; coord_apply {self._id} applies it"
        await self._stage(CampaignStatus.NEEDS_OPERATOR, message, chosen=whole.id)
        all_of_it = bool(whole.parent) or whole is chosen
        return left if all_of_it else await self._audit(self._scratch / whole.id)

    async def _audit(self, tree: Path) -> tuple[Finding, ...]:
        findings, missing = await self._parts.audit(self._component, tree, self._progress)
        if missing:
            await self._stage(CampaignStatus.AUDITING, "; ".join(missing))
        return tuple(findings)

    async def _round(self, number: int, findings: Sequence[Finding]) -> Candidate | None:
        """Try what is proposed until something is better; None where nothing is."""
        for proposer in self._parts.proposers:
            if not proposer.proposes(self._component):
                continue
            for ask in range(proposer.asks if isinstance(proposer, Reflecting) else 1):
                if not self._room():
                    break
                campaign, budget = self._campaign, self._campaign.budget
                asked = ProposalRequest(
                    self._component,
                    self._base,
                    findings,
                    random.Random(f"{campaign.seed} {number} {proposer.name}"),
                    max(0.0, budget.usd - campaign.usd),
                    max(0, budget.tokens - campaign.tokens),
                    max(1.0, budget.seconds - campaign.seconds) / 2,
                    await self._variants() if isinstance(proposer, Reflecting) else (),
                )
                better, judged = await self._asked(proposer, asked, ask)
                if better is not None:
                    return better
                if not judged:
                    break
        return None

    async def _asked(
        self, proposer: Proposer, asked: ProposalRequest, ask: int
    ) -> tuple[Candidate | None, int]:
        """Try what one proposes: the candidate that is better, and how many were judged."""
        again = ", with what the judge said" if ask else ""
        await self._stage(CampaignStatus.PROPOSING, f"{proposer.name} looks for changes{again}")
        judged = 0
        try:
            proposed = await self._proposed(proposer, asked, ask)
        except NothingProposed as nothing:
            self._silent = f"{proposer.name}: {nothing}"
            await self._stage(CampaignStatus.PROPOSING, self._silent, usd=nothing.cost_usd, proposing=True)
            return None, judged
        for proposal in proposed:
            mark, candidate = proposal_key(proposal), None
            if mark not in self._tried and self._room():
                self._tried.add(mark)
                candidate = await self._try(proposal)
            if candidate is not None:
                judged += 1
                if judged_better(candidate):
                    return candidate, judged
            elif proposal.cost_usd:
                text = f"nothing new: {proposal.title}"
                await self._stage(CampaignStatus.PROPOSING, text, usd=proposal.cost_usd, proposing=True)
        return None, judged

    async def _variants(self) -> tuple[Variant, ...]:
        """What was judged so far on the tree that is built upon."""
        name, variants = self._parent.id if self._parent is not None else "", []
        for candidate in self._campaign.candidates:
            if candidate.parent == name and candidate.verdict is not None:
                with suppress(BlobError):
                    variants.append(Variant(candidate, await texts_of(candidate.files, self._parts.blobs)))
        return tuple(variants)

    async def _proposed(self, proposer: Proposer, asked: ProposalRequest, ask: int) -> Iterable[Proposal]:
        """What somebody proposes for a tree; what this campaign has paid for is not asked for again.

        Raises:
            NothingProposed: nothing is; the message says why.
        """
        if not (self._campaign.budget.usd or self._campaign.budget.tokens):
            return await proposer.propose(asked)
        key = f"{proposer.name} {tree_digest(await asyncio.to_thread(tree_contents, asked.tree))}"
        key += f" {ask}" if ask else ""
        if (blob := self._campaign.kept.get(key)) is not None:
            with suppress(BlobError, ValueError):
                return decode_answer(await self._parts.blobs.get(blob), self._campaign.prepaid)
        try:
            proposed = await proposer.propose(asked)
        except NothingProposed as nothing:
            await self._keep(key, (), str(nothing), nothing.cost_usd, nothing.tokens)
            raise
        if isinstance(proposed, Sequence):
            usd = sum(proposal.cost_usd for proposal in proposed)
            await self._keep(key, proposed, "", usd, sum(proposal.tokens for proposal in proposed))
        return proposed

    async def _keep(
        self, key: str, proposed: Sequence[Proposal], nothing: str, usd: float, tokens: int
    ) -> None:
        """Keep an answer that was paid for."""
        if usd or tokens:
            blob = await self._parts.blobs.put(encode_answer(proposed, nothing))
            kept = me.ProposalsKept(campaign=self._id, key=key, blob=blob, usd=usd, tokens=tokens)
            await self._parts.stream.write(kept)

    def _room(self) -> bool:
        """Whether the budget lets another candidate be judged."""
        campaign = self._campaign
        return self._judged < campaign.budget.candidates and campaign.seconds < campaign.budget.seconds

    async def _try(self, proposal: Proposal) -> Candidate | None:
        """Make a candidate of a proposal and have it judged; None where it changes nothing."""
        self._judged += 1
        budget = self._campaign.budget
        self._progress.tell(self._judged - 1, budget.candidates, f"{self._id}: {clean_line(proposal.title)}")
        name = f"{self._id}.{len(self._campaign.candidates) + 1}"
        undeclared = sorted(path for path in proposal.files if not is_declared(path, self._component.paths))
        after = self._scratch / name
        if undeclared:
            why = f"it touches {', '.join(undeclared)}, which {self._component.id} does not declare"
            return await self._blocked(name, proposal, why)
        try:
            await asyncio.to_thread(copy_with_files, self._base, after, proposal.files)
        except JobRefused as error:
            return await self._blocked(name, proposal, str(error))
        candidate = await self._made(name, proposal, after)
        if candidate is None:
            return None
        if candidate.id != name:
            after = await asyncio.to_thread(after.rename, self._scratch / candidate.id)
        return await self._judge(candidate, proposal, after)

    async def _blocked(self, name: str, proposal: Proposal, why: str) -> Candidate:
        """Record a candidate that is not tried at all."""
        shutil.rmtree(self._scratch / name, ignore_errors=True)
        candidate = await self._listed(without_changes(name, self._component, proposal))
        if candidate.verdict is not None:
            return candidate
        verdict = Verdict(Ruling.REJECTED, (clean_line(why),), cheats=("undeclared files",))
        return await self._verdict(candidate.id, verdict)

    async def _made(self, name: str, proposal: Proposal, after: Path) -> Candidate | None:
        """Record what a candidate really changes, against the workspace and all of it."""
        assert self._suite is not None
        trees = (self._scratch / "now", self._base, after)
        first, old, new = [await asyncio.to_thread(tree_contents, tree) for tree in trees]
        if old == new:
            shutil.rmtree(after, ignore_errors=True)
            return None
        difference = await asyncio.to_thread(tree_difference, first, new)
        files, before = [
            {path: None if data is None else await self._parts.blobs.put(data) for path, data in side.items()}
            for side in (difference.files, difference.before)
        ]
        seed, allow = self._campaign.seed, "allow" * self._campaign.budget.allow
        key = canonical([tree_digest(old), tree_digest(new), self._suite.key, seed, allow])
        candidate = replace(
            without_changes(name, self._component, proposal),
            parent=self._parent.id if self._parent is not None else "",
            files=files,
            before=before,
            diff=await self._parts.blobs.put(difference.text.encode("utf-8", "surrogateescape")),
            added=difference.added,
            removed=difference.removed,
            key=hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest(),
        )
        return await self._listed(candidate)

    async def _listed(self, candidate: Candidate) -> Candidate:
        """The candidate, recorded; where it is one from before the campaign was cut off, that one."""
        for known in self._earlier:
            if _MARKS(known) == _MARKS(candidate):
                self._earlier.remove(known)
                return known
        await self._parts.stream.write(me.CandidateMade(campaign=self._id, candidate=candidate))
        return candidate

    async def _judge(self, candidate: Candidate, proposal: Proposal, after: Path) -> Candidate:
        """Have a candidate judged, unless that was done before."""
        if candidate.verdict is not None:
            return candidate
        known = self._parts.stream.state.verdicts.get(candidate.key)
        if known is not None:
            return await self._verdict(candidate.id, known[1], again=known[0])
        await self._stage(CampaignStatus.JUDGING, f"{candidate.id}: {candidate.title}")
        try:
            seen = await self._compare(after, proposal, sealed=False)
            if not is_promising(seen, proposal):
                return await self._verdict(candidate.id, seen)
            decided = await self._compare(after, proposal, sealed=True)
        except NotJudged as lacking:
            self._unjudged = str(lacking)
            await self._stage(CampaignStatus.PROPOSING, f"{candidate.id} is not judged: {lacking}")
            return candidate
        decided = replace(decided, seconds=decided.seconds + seen.seconds)
        return await self._verdict(candidate.id, decided)

    async def _compare(self, after: Path, proposal: Proposal, *, sealed: bool) -> Verdict:
        assert self._suite is not None
        campaign, suite = self._campaign, self._suite
        budget, left = campaign.budget, max(1.0, campaign.budget.seconds - campaign.seconds)
        before = (0.0, 0)
        if isinstance(suite, PaidSuite):
            before = suite.usd, suite.tokens
            usd, tokens = budget.usd - campaign.usd, budget.tokens - campaign.tokens
            suite.limits = SpendingLimits(
                usd=usd if budget.usd else None, tokens=tokens if budget.tokens else None
            )
        try:
            return await self._parts.judge.compare(
                self._base, after, self._component, proposal, suite,
                seed=campaign.seed, seconds=left, sealed=sealed, allow=budget.allow,
            )  # fmt: skip
        finally:
            if isinstance(suite, PaidSuite) and (spent := suite.tokens - before[1]):
                usd = suite.usd - before[0]
                text = f"the model's tasks took ${usd:.4f}, {spent:,} tokens"
                await self._stage(CampaignStatus.PROPOSING, text, usd=usd, tokens=spent)

    async def _verdict(self, candidate: str, verdict: Verdict, again: str = "") -> Candidate:
        event = me.CandidateJudged(
            campaign=self._id, candidate=candidate, verdict=cleaned_verdict(verdict), again=again
        )
        await self._parts.stream.write(event)
        judged = self._campaign.candidate(candidate)
        assert judged is not None
        return judged

    async def _whole(self, before: Path, last: Candidate) -> Candidate | None:
        """What the operator is to look at: the last candidate, or all that was built up as a whole."""
        if not last.parent:
            return last
        line = [last]
        while (parent := self._campaign.candidate(line[0].parent)) is not None:
            line.insert(0, parent)
        titles = [candidate.title for candidate in line]
        proposal = Proposal(
            f"{len(titles)} changes: {'; '.join(titles)}",
            "campaign",
            await texts_of(last.files, self._parts.blobs),
            why="each of them was better than what was there before it",
            answers=tuple(dict.fromkeys(finding for candidate in line for finding in candidate.answers)),
        )
        name = f"{self._id}.{len(self._campaign.candidates) + 1}"
        self._base = before
        after = self._scratch / last.id
        whole = await self._made(name, proposal, after)
        if whole is None:
            return None
        # What was first found better was judged against the workspace as it is.
        tried = (await self._judge(whole, proposal, after), line[0])
        return next((candidate for candidate in tried if judged_better(candidate)), None)

    async def _ended_without(self) -> None:
        campaign = self._campaign
        tried = len(campaign.candidates)
        message = f"no improvement found: {tried} candidates were judged" if tried else _NOTHING
        if self._silent and not tried:
            message = f"{message} ({self._silent})"
        elif not campaign.findings and not tried:
            message = "nothing was found, so nothing was tried"
        elif self._unjudged:
            message = f"no improvement shown: {self._unjudged}"
        elif not self._room():
            message += "; the budget is used up"
        await self._stage(CampaignStatus.NO_IMPROVEMENT, message)

    async def _stage(
        self,
        status: CampaignStatus,
        text: str,
        *,
        chosen: str = "",
        usd: float = 0.0,
        tokens: int = 0,
        proposing: bool = False,
    ) -> None:
        """Say where the campaign is, and what a model cost without a candidate to show for it."""
        text = clean(text, limit=2_000)
        event = me.CampaignStaged(
            campaign=self._id, status=status, text=text, chosen=chosen, usd=usd, tokens=tokens,
            proposing=proposing,
        )  # fmt: skip
        await self._parts.stream.write(event)


_NOTHING = "no improvement found: nobody had a change to propose"
