"""How programs are held, for people: one report for `pilothouse doctor` and the cockpit.

Source: sandbox spec §5.6.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from engine.sandbox.confinement import Confinement
from engine.sandbox.paths import KernelOpener, best_opener
from engine.sandbox.policy import Network, SandboxPolicy, Tier
from engine.sandbox.probe import LayerReport, Layers
from engine.sandbox.tier import PROMISES, JailRefusal, best_tier, gets_through


class Mark(StrEnum):
    """How a row of the report is to be read."""

    HEADING = ""
    FACT = " "
    GOOD = "✓"
    BAD = "✗"
    WARNING = "!"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the report."""

    mark: Mark
    label: str
    """Empty where the row goes on with what the one before says."""
    text: str


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """A policy, the jail that it gets on this machine, and what of the jail works."""

    policy: SandboxPolicy
    jail: Confinement | JailRefusal
    found: Layers

    @property
    def refusal(self) -> str:
        """Why no program may run; empty when programs may."""
        return self.jail.message if isinstance(self.jail, JailRefusal) else ""

    @property
    def reason(self) -> str:
        """The refusal in one sentence."""
        return self.jail.reason if isinstance(self.jail, JailRefusal) else ""

    @property
    def tier(self) -> Tier:
        """What holds programs; where none may run, what this machine would give."""
        return best_tier(self.found) if isinstance(self.jail, JailRefusal) else self.jail.tier

    @property
    def unconfined(self) -> bool:
        """True when programs run and nothing holds them."""
        return not self.refusal and self.tier is Tier.PATHS

    @property
    def summary(self) -> str:
        """Tier and network in a few words, such as `FULL · net off`; nothing holds the network in PATHS."""
        if self.refusal:
            return "NO JAIL · programs REFUSED"
        if self.unconfined:
            return "PATHS · programs NOT CONFINED"
        ports = f" {','.join(map(str, self.policy.ports))}" if self.policy.network is Network.PORTS else ""
        return f"{self.tier} · net {self.policy.network}{ports}"

    @property
    def alarm(self) -> str:
        """In two words what an operator must not overlook; empty when a jail holds programs."""
        return "PROGRAMS REFUSED" if self.refusal else "NOT CONFINED" if self.unconfined else ""

    @property
    def standing(self) -> str:
        """What holds programs now, in a sentence."""
        return self.refusal or f"{self.tier}: {PROMISES[self.tier]}"

    @property
    def layers(self) -> tuple[LayerReport, ...]:
        """Each layer, those that are never absent first."""
        return (*_always(), *self.found.reports)

    @property
    def missing(self) -> tuple[LayerReport, ...]:
        """The layers for want of which no program may run."""
        names = self.jail.missing if isinstance(self.jail, JailRefusal) else ()
        return tuple(self.found[name] for name in names)

    @property
    def gets_through(self) -> tuple[str, ...]:
        """What a program here can still learn or do outside; nothing where none may run."""
        return () if self.refusal else gets_through(self.tier, self.found)

    def rows(self) -> list[Row]:
        """The whole report: what holds programs, each layer, what gets through, and the policy."""
        mark = Mark.BAD if self.refusal else Mark.WARNING if self.unconfined else Mark.GOOD
        rows = [Row(mark, "now", self.standing), Row(Mark.HEADING, "Layers of the jail", "")]
        for layer in self.layers:
            rows.append(Row(Mark.GOOD if layer.ok else Mark.BAD, layer.name, layer.reason))
            rows += [Row(Mark.FACT, "", f"fix: {layer.fix}")] if layer.fix else []
        if self.gets_through:
            rows.append(Row(Mark.HEADING, f"What gets through in {self.tier}", ""))
            rows += [Row(Mark.WARNING, "", what) for what in self.gets_through]
        held = "; nothing holds them to files and network here" if self.unconfined else ""
        rows.append(Row(Mark.HEADING, f"What programs may do{held}", ""))
        return rows + [Row(Mark.FACT, subject, words) for subject, words in self.policy.facts().items()]

    def text(self) -> str:
        """The rows as lines for a terminal."""
        return "\n".join(f"  {row.mark or '—'} {row.label:<14} {row.text}".rstrip() for row in self.rows())


@cache
def _always() -> tuple[LayerReport, ...]:
    """The layers that need nothing of the kernel's jail; sandbox spec §5.1 L0, L1 and L3."""
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        beneath = isinstance(best_opener(directory), KernelOpener)
    finally:
        os.close(directory)
    how = "openat2" if beneath else "no openat2; a walk without links does the same, slower"
    return (
        LayerReport("beneath_root", True, how),
        LayerReport("environment", True, "built from an allow-list"),
        LayerReport("process_tree", sys.platform == "linux", "a supervisor ends whole trees"),
    )
