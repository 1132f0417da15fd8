"""A campaign as a page of HTML: gains with intervals, what it cost, the family, what was tried and why.

The page stands by itself: no script, nothing that is loaded, every text escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import isfinite
from pathlib import Path
from string import Template

from app.projection.improve_views import family
from engine.core.improvement import Campaign, Candidate, Gain
from engine.improve.campaigns.report import shadow_text

_PAGE = Path(__file__).with_name("campaign_page.html")
_WIDTH, _ROW, _LEFT, _BELOW = 860, 26, 90, 34
"""Of pictures, in pixels: their width, a row's height, the room for names, the room for the axis."""


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
        gains=_gains([each for each in campaign.candidates if _gain(each)]),
        cost=_cost(campaign.candidates),
        family=_tree(campaign),
        tried=_rows(map(_tried, campaign.candidates)),
        differences="".join(
            f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
            for name, text in differences.items()
        ),
        log=_rows([*found, *done]),
    )


def _rows(rows: Iterable[Sequence[str]]) -> str:
    return "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)


def _gain(candidate: Candidate) -> Gain | None:
    gain = candidate.verdict.gain if candidate.verdict is not None else None
    return gain if gain is not None and isfinite(gain.low + gain.high) else None


def _ruling(candidate: Candidate) -> str:
    return candidate.verdict.ruling.value if candidate.verdict else "not judged"


def _tried(candidate: Candidate) -> tuple[str, str, str, str]:
    reasons = candidate.verdict.reasons if candidate.verdict is not None else ()
    why = "; ".join(filter(None, (candidate.why, *reasons)))
    return f"{candidate.id} {candidate.title}", candidate.origin, _ruling(candidate), why


def _tree(campaign: Campaign) -> str:
    """The candidates as lists within lists."""
    lines, depth = ["<ul>"], 0
    for lead, candidate in family(campaign):
        deep = len(lead) // 2
        lines.append("<ul>" * (deep - depth) + "</ul>" * (depth - deep))
        depth = deep
        chosen = " <b>chosen</b>" if candidate.id == campaign.chosen else ""
        lines.append(f"<li>{escape(f'{candidate.id} {candidate.title}: {_ruling(candidate)}')}{chosen}</li>")
    return "".join([*lines, "</ul>" * (depth + 1)]) if campaign.candidates else "<p>none</p>"


def _gains(measured: Sequence[Candidate]) -> str:
    """The interval of each candidate's gain; right of the line is better than what there is."""
    gains = [(candidate, gain) for candidate in measured if (gain := _gain(candidate))]
    if not gains:
        return "<p>No candidate was measured.</p>"
    low = min(0.0, *(gain.low for _, gain in gains))
    high = max(0.0, *(gain.high for _, gain in gains))
    draw = []
    for at, (candidate, gain) in enumerate(gains):
        y = at * _ROW + _ROW / 2
        kind = "better" if gain.low > 0 else "worse" if gain.high < 0 else "even"
        left, middle, right = (_place(value, low, high) for value in (gain.low, gain.mean, gain.high))
        draw += [
            f'<text x="0" y="{y + 4:g}">{escape(candidate.id)}</text>',
            f'<line class="{kind}" x1="{left:.1f}" x2="{right:.1f}" y1="{y:g}" y2="{y:g}"/>',
            f'<circle class="{kind}" cx="{middle:.1f}" cy="{y:g}" r="4"/>',
        ]
    nought, height = _place(0.0, low, high), len(gains) * _ROW
    draw.append(f'<line class="axis" x1="{nought:.1f}" x2="{nought:.1f}" y1="0" y2="{height}"/>')
    return _picture(draw, height, _axis(low, high, height, "gain, with its interval at 95 %"))


def _cost(candidates: Sequence[Candidate]) -> str:
    """The best gain that was shown, over the processor seconds of judging."""
    spent, best, points = 0.0, 0.0, [(0.0, 0.0)]
    for candidate in candidates:
        spent += candidate.verdict.seconds if candidate.verdict else 0.0
        points.append((spent, best))
        if (gain := _gain(candidate)) is not None and _ruling(candidate) == "better":
            best = max(best, gain.low)
        points.append((spent, best))
    if not spent:
        return "<p>Nothing was judged.</p>"
    height = 5 * _ROW
    line = " ".join(
        f"{_place(x, 0.0, spent):.1f},{height - y / (best or 1.0) * (height - 8):.1f}" for x, y in points
    )
    draw = [
        f'<polyline class="curve" points="{line}"/>',
        f'<text x="0" y="12">{escape(f"{best:.3g}")}</text><text x="0" y="{height}">0</text>',
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH}" y1="{height}" y2="{height}"/>',
    ]
    return _picture(draw, height, _axis(0.0, spent, height, "processor seconds; the best gain shown by then"))


def _place(value: float, low: float, high: float) -> float:
    return _LEFT + (value - low) / ((high - low) or 1.0) * (_WIDTH - _LEFT - 10)


def _axis(low: float, high: float, height: int, words: str) -> Iterator[str]:
    y = height + 14
    yield f'<text x="{_LEFT}" y="{y}">{low:.3g}</text>'
    yield f'<text x="{_WIDTH - 10}" y="{y}" text-anchor="end">{high:.3g}</text>'
    yield f'<text x="{_WIDTH / 2:g}" y="{y + 14}" text-anchor="middle">{escape(words)}</text>'


def _picture(draw: Iterable[str], height: int, axis: Iterable[str]) -> str:
    size = f'viewBox="0 0 {_WIDTH} {height + _BELOW}"'
    return f'<svg role="img" {size}>{"".join([*draw, *axis])}</svg>'
