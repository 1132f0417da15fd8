"""A campaign as a page of HTML: gains with intervals, what it cost, the family, what was tried and why.

The page stands by itself: no script, nothing that is loaded, every text escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from app.projection import pictures
from app.projection.improve_views import family
from engine.core.improvement import Campaign, Candidate
from engine.improve.campaigns.report import shadow_text
from widgets.dialogs.picture import Picture, picture_lines

_PAGE = Path(__file__).with_name("campaign_page.html")
_HEIGHT, _WIDTH = 16, 100
"""Of pictures, in characters."""


def page(campaign: Campaign, differences: Mapping[str, str]) -> str:
    """The page.

    Args:
        campaign: what it shows.
        differences: the text of each candidate's difference, by the candidate's id.
    """
    budget = campaign.budget
    facts = {
        "status": f"{campaign.status}; {campaign.message}".rstrip("; "),
        "asked for": f"{campaign.directive} ({campaign.rule})" if campaign.rule else campaign.directive,
        "chosen": campaign.chosen or "none",
        "candidates": f"{len(campaign.candidates)} of {budget.candidates}",
        "processor": f"{campaign.seconds:.1f} of {budget.seconds:g} s",
        "models": f"${campaign.usd:.4f}, {campaign.tokens:,} tokens",
        "seed": str(campaign.seed),
        "shadow": shadow_text(campaign) or "not run",
        "applied": campaign.application.ended if campaign.application else "no",
    }
    found = [("found", finding.text) for finding in campaign.findings]
    done = [(stage.at, f"{stage.status}: {stage.text}".removesuffix(": ")) for stage in campaign.stages]
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(f"Campaign {campaign.id} on {campaign.component.id}"),
        lead=escape(campaign.component.title),
        facts=_rows(facts.items()),
        gains=_drawn(pictures.gains(campaign)),
        cost=_drawn(pictures.costs(campaign)),
        family=escape("\n".join(_tree(campaign)) or "none"),
        tried=_rows(map(_tried, campaign.candidates)),
        differences="".join(
            f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
            for name, text in differences.items()
        ),
        log=_rows([*found, *done]),
    )


def _rows(rows: Iterable[Sequence[str]]) -> str:
    return "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)


def _ruling(candidate: Candidate) -> str:
    return candidate.verdict.ruling.value if candidate.verdict else "not judged"


def _tried(candidate: Candidate) -> tuple[str, str, str, str]:
    reasons = candidate.verdict.reasons if candidate.verdict is not None else ()
    why = "; ".join(filter(None, (candidate.why, *reasons)))
    return f"{candidate.id} {candidate.title}", candidate.origin, _ruling(candidate), why


def _tree(campaign: Campaign) -> Iterator[str]:
    for lead, candidate in family(campaign):
        chosen = ", chosen" if candidate.id == campaign.chosen else ""
        yield f"{lead}{candidate.id} {candidate.title}: {_ruling(candidate)}{chosen}"


def _drawn(picture: Picture) -> str:
    """A picture as it is in the cockpit, with the same in words below it."""
    lines = picture_lines(picture, _HEIGHT, _WIDTH)
    return "\n".join(
        "".join(f'<span class="{style}">{escape(text)}</span>' for text, style in pieces) for pieces in lines
    )
