"""A small craft to fly campaigns with: texts that are better with fewer words, and must keep the word `keep`.

All of it is real: the suite reads the trees, the cost is counted, no verdict is laid down beforehand.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from engine.core.improvement import (
    Component,
    ComponentKind,
    Concern,
    Finding,
    Gain,
    Proposal,
    Ruling,
    Verdict,
)
from engine.improve.mastermind import Mastermind
from engine.improve.ports import AuditUnavailable, Check, Progress, ProposalRequest, Split, Suite

TEXT = "sandbox/texts/one.txt"
OTHER = "sandbox/texts/two.txt"


def component(name: str = "texts", *paths: str, critical: bool = False) -> Component:
    """Texts as a component."""
    return Component(
        name,
        ComponentKind.PROJECT,
        f"the texts {name}",
        paths or (TEXT, OTHER),
        "words",
        critical,
        (f"{name}_agent",),
    )


@dataclass
class WordAuditor:
    """Finds words that stand twice in a row."""

    there: Sequence[Component] = (component(),)
    name: str = "words"
    down: str = ""

    async def components(self) -> Sequence[Component]:
        return self.there

    def fits(self, component: Component) -> bool:
        return True

    async def audit(self, component: Component, tree: Path, progress: Progress) -> Sequence[Finding]:
        if self.down:
            raise AuditUnavailable(self.down)
        found = []
        for path in component.paths:
            words = (tree / path).read_text().split() if (tree / path).exists() else []
            for place, (one, other) in enumerate(pairwise(words)):
                if one == other:
                    text = f"{one} stands twice in a row in {path}"
                    found.append(
                        Finding(
                            component.id, Concern.STYLE, text, (f"{path}:{place}",), 6, path, place + 1, one
                        )
                    )
        return found


@dataclass
class WordProposer:
    """Takes one of two like words out; also proposes what changes nothing for the better."""

    name: str = "words"
    null: bool = False
    other: Callable[[Component, Path], Iterable[Proposal]] | None = None
    asked: int = 0

    def proposes(self, component: Component) -> bool:
        return True

    async def propose(self, asked: ProposalRequest) -> Iterable[Proposal]:
        self.asked += 1
        if self.other is not None:
            return self.other(asked.component, asked.tree)
        proposals = []
        for finding in asked.findings:
            words = (asked.tree / finding.path).read_text().split()
            where = next(n for n in range(len(words) - 1) if words[n] == words[n + 1] == finding.name)
            kept = list(words) if self.null else [*words[:where], *words[where + 1 :]]
            if self.null:
                asked.rng.shuffle(kept)
            title = f"{finding.path}: {finding.name} once"
            proposals.append(
                Proposal(title, "fixer:words", {finding.path: " ".join(kept)}, answers=(finding,))
            )
        return proposals


@dataclass(frozen=True)
class WordSuite:
    """Fewer words are better; `keep` has to stay."""

    key: str
    measure: None = None

    def checks(self, split: Split) -> Sequence[Check]:
        return ()

    def owns(self, path: str) -> bool:
        return False


class WordSuites:
    """Lays the suite down."""

    def fits(self, component: Component) -> bool:
        return True

    def roots(self, component: Component) -> tuple[str, ...]:
        return ("sandbox/texts",)

    async def sets(self, component: Component, workspace: Path) -> Mapping[str, str]:
        return {}

    async def make(self, component: Component, before: Path, seed: int) -> Suite:
        return WordSuite(hashlib.sha256(f"words {seed}".encode()).hexdigest())


@dataclass
class WordComparer:
    """Counts."""

    asked: list[tuple[str, bool]] = field(default_factory=list)
    wait: asyncio.Event | None = None
    fails_when: Callable[[str], bool] = lambda text: "keep" not in text

    def prepare(self) -> None:
        pass

    async def compare(
        self,
        before: Path,
        after: Path,
        component: Component,
        proposal: Proposal,
        suite: Suite,
        *,
        seed: int,
        seconds: float,
        sealed: bool = True,
        allow: bool = False,
    ) -> Verdict:
        self.asked.append((proposal.title, sealed))
        if self.wait is not None:
            await self.wait.wait()
        old, new = _text(before, component), _text(after, component)
        if self.fails_when(new):
            return Verdict(Ruling.BROKEN, ("keep is gone",), broken=("keep",), seconds=0.5)
        gain = float(len(old.split()) - len(new.split()))
        ruling = Ruling.BETTER if gain > 0 else Ruling.NO_BETTER
        figures = Gain(gain, gain, gain, 1, "words", len(old.split()), len(new.split()))
        return Verdict(ruling, (f"{gain:g} words fewer",), figures, seconds=0.5)


def _text(tree: Path, component: Component) -> str:
    paths = [tree / path for path in component.paths]
    return "\n".join(path.read_text() for path in paths if path.exists())


def plug(mastermind: Mastermind, auditor: WordAuditor | None = None) -> tuple[WordProposer, WordComparer]:
    """Take the whole craft in, alone."""
    proposer, comparer = WordProposer(), WordComparer()
    parts = mastermind.parts
    parts.auditors, parts.proposers, parts.suites = [auditor or WordAuditor()], [proposer], [WordSuites()]
    parts.judge = comparer
    return proposer, comparer


def lay(workspace: Path, one: str = "keep this this line", two: str = "and that line") -> None:
    """Lay the texts down."""
    for path, text in ((TEXT, one), (OTHER, two)):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
