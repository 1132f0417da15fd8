"""Candidates of a campaign before anything is known of them."""

from __future__ import annotations

from engine.domain.improvement import Component, Proposal
from engine.domain.mastermind import Candidate
from engine.domain.text import clean, clean_line


def mark_of(proposal: Proposal) -> tuple[object, ...]:
    """By what a proposal is known; a model may answer under the same title with something else."""
    files = frozenset(proposal.files.items()) if proposal.origin.startswith("model:") else ()
    return proposal.origin, proposal.title, files


def bare(name: str, component: Component, proposal: Proposal) -> Candidate:
    """A candidate without what it changes."""
    return Candidate(
        name,
        component.id,
        clean_line(proposal.title, limit=300),
        clean_line(proposal.origin, limit=200),
        clean(proposal.why, limit=4_000),
        answers=tuple(proposal.answers),
        cost_usd=proposal.cost_usd,
    )
