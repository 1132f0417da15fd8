"""Which agent 300 labelled requests are for, beside BM25 over descriptions and an embedder.

The crew is the built-in agents that can be selected and 20 public skills. Each method says who fits, best
first; nobody, or the clarifier, is right for what no agent fits. Thresholds are chosen on the half of the
requests that develops, and every figure is of the half that is held out. "After outcomes" has seen how the
developing half ended: the right agent achieved each, and whoever was selected wrongly was rejected.
Intervals are 95 % by resampling the requests. Run it with `python -m tests.benchmarks.selection`, where
PILOTHOUSE_SKILLS names a folder that holds the public skills (`tests/engine/crew/selection/requests.toml`).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from engine.core.bm25 import Bm25
from engine.crew.builds import built_in_agent, shipped_agents, with_file_text
from engine.crew.ontology.spec import AgentSpec
from engine.crew.selection import CLARIFIER, Outcome, choose, signal_in
from engine.memory.embedder_choice import MINILM, EmbedderChoice
from engine.memory.words import Tokens
from tests.engine.crew.builder.folders import build

SET = Path(__file__).parents[1] / "engine/crew/selection/requests.toml"
SKILLSET = "PILOTHOUSE_SKILLS"
NOBODY = "nobody"
TOP = 3
ALIKE, UNLIKE = 3.0, 0.1
RESAMPLES = 1_000
Ranked = list[tuple[str, float]]
"""Ids of agents with their scores, best first."""


class Request(NamedTuple):
    """A request with the agent that it is for."""

    text: str
    agent: str


def requests() -> tuple[list[Request], list[Request]]:
    """Those that develop, and those that are held out."""
    table = tomllib.loads(SET.read_text("utf-8"))["requests"]
    every = [Request(text, agent) for agent, texts in table.items() for text in texts]
    return every[::2], every[1::2]


def public_skills(folder: Path) -> list[Path]:
    """The folders of the public skills.

    Raises:
        LookupError: one is missing, or is another one than was labelled.
    """
    out = []
    for name, digest in tomllib.loads(SET.read_text("utf-8"))["skills"].items():
        path = folder / name / "SKILL.md"
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise LookupError(f"{path} is not the file that was labelled: SHA-256 {digest}")
        out.append(path.parent)
    return out


async def crew_of(skills: Sequence[Path]) -> list[AgentSpec]:
    """The built-in agents, and those that are built of these folders, as a crew registers them."""
    made = [await built_in_agent(folder) for folder in shipped_agents()]
    specs = [agent.spec for agent in made]
    with tempfile.TemporaryDirectory() as workspace:
        for folder in skills:
            result = await build(Path(workspace), folder)
            assert result.spec is not None, result.errors
            text = Path(result.output_path, result.spec.instructions.system_file).read_text("utf-8")
            specs.append(with_file_text(result.spec, text))
    return [spec for spec in specs if spec.selectable]


# ------------------------------------------------------------------ methods


def ours(specs: Sequence[AgentSpec], text: str, outcomes: Sequence[Outcome] = ()) -> Ranked:
    """As the crew selects."""
    chosen = choose(specs, {}, signal_in(text, specs, done=(), limit=len(specs)), outcomes)
    return [(row.id, row.score) for row in chosen.rows]


def by_triggers(specs: Sequence[AgentSpec], text: str) -> Ranked:
    """As it was before words counted: by triggers and types of problems alone."""
    chosen = choose(specs, {}, replace(signal_in(text, specs, limit=len(specs)), text=""))
    return [(row.id, row.score) for row in chosen.rows]


def after(specs: Sequence[AgentSpec], seen: Sequence[Request]) -> list[Outcome]:
    """How these requests end, one after the other, where the operator puts right what was selected."""
    outcomes: list[Outcome] = []
    for text, agent in seen:
        first = next((name for name, _ in ours(specs, text, outcomes)), CLARIFIER)
        if first not in (agent, CLARIFIER):
            outcomes.append(Outcome(first, text, -1.0))
        if agent != NOBODY:
            outcomes.append(Outcome(agent, text, 1.0))
    return outcomes


def bm25(specs: Sequence[AgentSpec], texts: Sequence[str]) -> list[Ranked]:
    """Plain BM25 over the descriptions, with stems."""
    tokens = Tokens()
    scored = Bm25(tokens.counts_of([spec.description for spec in specs]))
    rows = [scored.scores(query) for query in tokens.counts_of(texts)]
    tokens.close()
    return [_ranked(specs, row) for row in rows]


async def embedded(specs: Sequence[AgentSpec], texts: Sequence[str]) -> list[Ranked]:
    """By the cosine of description and request."""
    embedder = EmbedderChoice(MINILM).open()
    try:
        known = await embedder.embed([spec.description for spec in specs], "passage")
        asked = await embedder.embed(texts, "query")
    finally:
        await embedder.close()
    return [_ranked(specs, [sum(map(float.__mul__, one, other)) for other in known]) for one in asked]


def together(words: Ranked, alike: Ranked) -> Ranked:
    """Both, with the weight that does best on the half that develops."""
    scores = dict(words)
    for name, cosine in alike:
        scores[name] = scores.get(name, 0.0) + ALIKE * max(cosine - UNLIKE, 0.0)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _ranked(specs: Sequence[AgentSpec], scores: Sequence[float]) -> Ranked:
    pairs = zip((spec.id for spec in specs), scores, strict=True)
    return sorted((pair for pair in pairs if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))


# ------------------------------------------------------------------ figures


def hits(asked: Sequence[Request], ranked: Sequence[Ranked], least: float, top: int) -> list[bool]:
    """Whether each request goes right, by the best so many that score more than the least."""
    out = []
    for (_, agent), row in zip(asked, ranked, strict=True):
        names = [name for name, score in row if score > least] or [CLARIFIER]
        out.append(names[0] == CLARIFIER if agent == NOBODY else agent in names[:top])
    return out


def threshold(asked: Sequence[Request], ranked: Sequence[Ranked]) -> float:
    """The least score with which most requests go right at once."""
    scores = sorted({0.0, *(score for row in ranked for _, score in row[:1])})
    return max(scores, key=lambda least: sum(hits(asked, ranked, least, 1)))


def interval(right: Sequence[bool]) -> str:
    """The share of hits in percent, with its interval."""
    dice = random.Random(24)
    shares = sorted(sum(dice.choices(right, k=len(right))) / len(right) for _ in range(RESAMPLES))
    low, high = shares[RESAMPLES // 40], shares[-RESAMPLES // 40]
    return f"{sum(right) / len(right):.1%} ({low:.0%} to {high:.0%})"


def rows() -> Iterator[dict[str, Any]]:
    """A row for each method."""
    folder = os.environ.get(SKILLSET, "")
    if not folder:
        yield {"method": "none", "note": f"{SKILLSET} names no folder with the public skills"}
        return
    develop, held = requests()
    specs = asyncio.run(crew_of(public_skills(Path(folder))))
    outcomes = after(specs, develop)

    def row(name: str, rank: Callable[[Sequence[Request]], list[Ranked]], *, least: bool) -> dict[str, Any]:
        limit = threshold(develop, rank(develop)) if least else 0.0
        ranked = rank(held)
        return {
            "method": name,
            "top_1": interval(hits(held, ranked, limit, 1)),
            "top_3": interval(hits(held, ranked, limit, TOP)),
        }

    yield row("triggers alone", lambda asked: [by_triggers(specs, each.text) for each in asked], least=False)
    yield row("ours", lambda asked: [ours(specs, each.text) for each in asked], least=False)
    name = f"ours after {len(outcomes)} outcomes"
    yield row(name, lambda asked: [ours(specs, each.text, outcomes) for each in asked], least=False)
    yield row("bm25 over descriptions", lambda asked: bm25(specs, [each.text for each in asked]), least=True)
    if EmbedderChoice(MINILM).missing:
        yield {"method": MINILM, "note": EmbedderChoice(MINILM).missing}
    else:
        alike = {
            each.text: found
            for half in (develop, held)
            for each, found in zip(half, asyncio.run(embedded(specs, [x.text for x in half])), strict=True)
        }
        yield row("minilm over descriptions", lambda asked: [alike[each.text] for each in asked], least=True)
        yield row(
            "ours and minilm (not shipped)",
            lambda asked: [together(ours(specs, each.text), alike[each.text]) for each in asked],
            least=True,
        )


if __name__ == "__main__":
    for result in rows():
        print("  ".join(f"{key}: {value}" for key, value in result.items()))
