"""Which jail a command gets on this machine, or why it gets none.

Each layer of the jail is tried, never concluded from a version. The trial runs in children that are
thrown away and takes some 30 ms, once in a process; blocking. What the policy requires and the machine
lacks is a refusal that says what is missing and how to get it, never a weaker jail. `SandboxReport` says
for people how programs are held: one report for `pilothouse doctor` and the cockpit.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import tomllib
from functools import cache
from pathlib import Path

from engine.sandbox import jail as bwrap
from engine.sandbox import kernel, landlock
from engine.sandbox.boot import __file__ as boot_file
from engine.sandbox.jail import Confinement, KernelJail, Unconfined
from engine.sandbox.paths import KernelOpener, best_opener
from engine.sandbox.policy import Network, SandboxPolicy, Tier
from engine.sandbox.programs import BASE_PYTHON
from engine.sandbox.seccomp import FilterOptions, build_filter
from engine.sandbox.syscall_numbers import MACHINES
from engine.value import dataclass

_PATIENCE_S = 30.0
_NOT_LINUX = "this needs Linux"
_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_INSTALL_BWRAP: str = _WORDS["install"]["bubblewrap"]


def _fix(layer: str, why: str) -> str:
    """What helps against an error; the first that there is for an unknown one."""
    fixes: dict[str, str] = _WORDS["fixes"][layer]
    return next((fix for words, fix in fixes.items() if words in why), next(iter(fixes.values())))


@dataclass(frozen=True, slots=True)
class LayerReport:
    """One layer of the jail, as found."""

    name: str
    ok: bool
    reason: str
    """What it gives when it works, why not when it does not."""
    fix: str = ""
    """What the operator can do, when it does not work."""


@dataclass(frozen=True, slots=True)
class Layers:
    """What this machine gives."""

    reports: tuple[LayerReport, ...]
    landlock_abi: int = 0
    bwrap: str | None = None
    """Absolute path, when it works."""

    def __getitem__(self, name: str) -> LayerReport:
        """The report of a layer; one that was not tried does not work."""
        reports = [report for report in self.reports if report.name == name]
        return reports[0] if reports else LayerReport(name, False, "it was not tried")


@cache
def layers() -> Layers:
    """What works here; tried once in a process."""
    return probe()


def probe() -> Layers:
    """Try every layer now."""
    if sys.platform != "linux":
        return Layers(
            tuple(LayerReport(name, False, _NOT_LINUX) for name in ("landlock", "seccomp", "namespaces"))
        )
    if kernel.MACHINE not in MACHINES:
        why = f"no table of system calls for {kernel.MACHINE}; known are {', '.join(MACHINES)}"
        return Layers((LayerReport("seccomp", False, why),))
    answers = _trial()
    abi = answers.get("abi", 0)
    abi = abi if isinstance(abi, int) and not answers["landlock"] else 0
    namespaces, path = _namespaces()
    note = "; run by root, processes are counted, not capped" if os.getuid() == 0 else ""
    reports = (
        _landlock(str(answers["landlock"]), abi),
        _simple("scope", answers, "a command is killed whole, at once", "needs a kernel of 6.12 or later"),
        _simple(
            "seccomp",
            answers,
            f"{kernel.MACHINE}, {len(_filter()) // 8} instructions",
            "needs a kernel with CONFIG_SECCOMP_FILTER, and a container that allows seccomp",
        ),
        _simple(
            "broker",
            answers,
            "chmod, chown and times of files outside are refused",
            "another seccomp listener is above; start Pilothouse outside of it",
        ),
        namespaces,
        _simple("capabilities", answers, f"none are kept{note}", "start Pilothouse as another user"),
    )
    return Layers(reports, abi, path)


def _filter() -> bytes:
    return build_filter(FilterOptions(), kernel.MACHINE)


def _trial() -> dict[str, str | int]:
    """The answers of `engine.sandbox.trial`; each layer fails when it cannot be run."""
    command = [str(BASE_PYTHON), "-I", "-S", str(Path(boot_file).resolve()), "trial"]
    why = ""
    try:
        done = subprocess.run(
            command, input=_filter(), capture_output=True, env={}, cwd="/", timeout=_PATIENCE_S, check=False
        )
        answers = ast.literal_eval(done.stdout.decode())
        if isinstance(answers, dict):
            return answers
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    except (SyntaxError, ValueError):
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    return dict.fromkeys(
        ("landlock", "scope", "seccomp", "broker", "capabilities"), why or "the trial did not run"
    )


def _simple(name: str, answers: dict[str, str | int], good: str, fix: str) -> LayerReport:
    why = str(answers[name])
    return LayerReport(name, not why, why or good, fix if why else "")


def _landlock(why: str, abi: int) -> LayerReport:
    if why:
        return LayerReport("landlock", False, why, _fix("landlock", why))
    lost = landlock.missing(abi)
    reason = f"ABI {abi}" + (f": {'; '.join(lost)}" if lost else ": files, TCP ports, signals")
    return LayerReport("landlock", True, reason)


def _namespaces() -> tuple[LayerReport, str | None]:
    """Whether bwrap makes what `engine.sandbox.jail` asks of it."""
    path = bwrap.find_bwrap()
    if path is None:
        there = [place for place in bwrap.CANDIDATES if os.access(place, os.X_OK)]
        why = f"{there[0]} is not root's own" if there else "bubblewrap is not installed"
        return LayerReport("namespaces", False, why, _INSTALL_BWRAP), None
    with tempfile.TemporaryDirectory() as root:
        arguments = bwrap.bwrap_arguments(Path(root).resolve(), SandboxPolicy(), ())
        try:
            done = subprocess.run(
                [path, *arguments, "--", "/bin/sh", "-c", ":"],
                capture_output=True, env={}, timeout=_PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return LayerReport("namespaces", False, str(error), _INSTALL_BWRAP), None
    if done.returncode == 0:
        return LayerReport("namespaces", True, f"{path}: files, processes and network of its own"), path
    why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {done.returncode}"
    return LayerReport("namespaces", False, why, _fix("namespaces", why)), None


PROMISES = {Tier(tier): promise for tier, promise in _WORDS["promises"].items()}
_NEEDS = {Tier.FULL: ("landlock", "seccomp", "namespaces"), Tier.KERNEL: ("landlock", "seccomp")}


@dataclass(frozen=True, slots=True)
class JailRefusal:
    """No jail that will do; nothing runs."""

    message: str
    """Why, what is missing, and how to get it."""
    missing: tuple[str, ...] = ()
    """Names of the layers."""
    reason: str = ""
    """The first sentence of the message."""


def best_tier(known: Layers) -> Tier:
    """The firmest tier that these layers make."""
    made = (tier for tier, needs in _NEEDS.items() if all(known[name].ok for name in needs))
    return next(made, Tier.PATHS)


def best_jail(
    policy: SandboxPolicy, known: Layers | None = None, *, at_most: Tier = Tier.FULL
) -> Confinement | JailRefusal:
    """The firmest jail that this machine gives, when the policy is content with it; blocking at first.

    Args:
        policy: what is required; PATHS is given only where the operator accepted it.
        known: the layers; those of this machine by default, tried once in a process.
        at_most: a firmer tier is not used, as where a program needs what it takes away.
    """
    here = known or layers()
    tier = max((best_tier(here), at_most), key=lambda item: -item.strength)
    if tier.strength < policy.lowest.strength:
        return _refusal(policy, here, tier)
    if tier is Tier.PATHS:
        return Unconfined()
    jail = KernelJail(here.landlock_abi, here["broker"].ok, here.bwrap if tier is Tier.FULL else None)
    if lacking := jail.lacks(policy):
        reason = f"No command may run: {lacking}."
        return JailRefusal(reason, ("landlock",), reason)
    return jail


def _refusal(policy: SandboxPolicy, known: Layers, tier: Tier) -> JailRefusal:
    expected = policy.lowest
    missing = [known[name] for name in _NEEDS[expected] if not known[name].ok]
    text = "; ".join(
        f"{report.name}: {report.reason}" + (f" — {report.fix}" if report.fix else "") for report in missing
    )
    reason = f"No command may run: the policy requires the jail {expected}, and this machine gives {tier}."
    return JailRefusal(
        f"{reason} {text}. Only the operator can accept {tier}: once with --accept-tier {tier.lower()}"
        + (", for good with accept_paths in pilothouse.toml." if tier is Tier.PATHS else "."),
        tuple(report.name for report in missing),
        reason,
    )


def remaining_access(tier: Tier, known: Layers) -> tuple[str, ...]:
    """What a command in this tier can still learn or do outside, in words."""
    held, words = known["broker"].ok, _WORDS["remaining"]
    if tier is Tier.PATHS:
        return (words["everything"],)
    if tier is Tier.KERNEL:
        return (*words["seen"], *(() if held else (words["changed"],)))
    return () if held else (words["nodes"],)


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
        """The missing layers without which no program may run."""
        names = self.jail.missing if isinstance(self.jail, JailRefusal) else ()
        return tuple(self.found[name] for name in names)

    @property
    def gets_through(self) -> tuple[str, ...]:
        """What a program here can still learn or do outside; nothing where none may run."""
        return () if self.refusal else remaining_access(self.tier, self.found)

    def text(self) -> str:
        """The report for a terminal: what holds programs, each layer, what gets through, and the policy."""
        mark = "✗" if self.refusal else "!" if self.unconfined else "✓"
        rows = [(mark, "now", self.standing), ("—", "Layers of the jail", "")]
        for layer in self.layers:
            rows.append(("✓" if layer.ok else "✗", layer.name, layer.reason))
            rows += [(" ", "", f"fix: {layer.fix}")] if layer.fix else []
        if self.gets_through:
            rows.append(("—", f"What gets through in {self.tier}", ""))
            rows += [("!", "", what) for what in self.gets_through]
        held = "; nothing holds them to files and network here" if self.unconfined else ""
        rows.append(("—", f"What programs may do{held}", ""))
        rows += [(" ", subject, words) for subject, words in self.policy.facts().items()]
        return "\n".join(f"  {mark} {label:<14} {text}".rstrip() for mark, label, text in rows)


@cache
def _always() -> tuple[LayerReport, ...]:
    """The layers that need nothing of the kernel's jail."""
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
