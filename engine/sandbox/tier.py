"""Which jail a command gets on this machine, or why it gets none.

Fail closed: what the policy requires and the machine lacks is a refusal that says what is missing and how
to get it, never a weaker jail (sandbox spec §5.1, §5.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.sandbox.confinement import Confinement, Unconfined
from engine.sandbox.jail import KernelJail
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.probe import Layers, layers
from engine.sandbox.seatbelt import SeatbeltJail

PROMISES = {
    Tier.FULL: "commands cannot see or touch anything that is not listed, nor outlive their run",
    Tier.KERNEL: "commands cannot read or change other files; they can learn that a path exists",
    Tier.SEATBELT: "writes of commands are confined and secrets denied; not tested",
    Tier.PATHS: "commands are NOT confined; only the file commands are",
}
_SEEN = (
    "stat and access of a path outside (that it exists, its size, owner and times)",
    "readlink of a link outside",
    "names and values of extended attributes outside",
    "statfs of a file system outside",
    "chdir to a directory outside, without reading it",
    "that a process outside exists, its group, session and priority",
)
_CHANGED = "chmod, chown and times of files outside"
_NODES = "chmod, chown and times of devices and entries of /proc, where root runs it"
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


def best_tier(found: Layers) -> Tier:
    """The firmest tier that these layers make."""
    for tier, needs in _NEEDS.items():
        if all(found[name].ok for name in needs):
            return tier
    return Tier.SEATBELT if found["seatbelt"].ok else Tier.PATHS


def best_jail(
    policy: SandboxPolicy, found: Layers | None = None, *, at_most: Tier = Tier.FULL
) -> Confinement | JailRefusal:
    """The firmest jail that this machine gives, when the policy is content with it; blocking at first.

    Args:
        policy: what is required; PATHS is given only where the operator accepted it.
        found: the layers; those of this machine by default, tried once in a process.
        at_most: a firmer tier is not used, as where a program needs what it takes away.
    """
    found = found or layers()
    tier = max((best_tier(found), at_most), key=lambda one: -one.strength)
    if tier.strength < policy.lowest.strength:
        return _refusal(policy, found, tier)
    jail = _made(tier, found)
    if isinstance(jail, KernelJail) and (lacking := jail.lacks(policy)):
        reason = f"No command may run: {lacking}."
        return JailRefusal(reason, ("landlock",), reason)
    return jail


def _made(tier: Tier, found: Layers) -> Confinement:
    match tier:
        case Tier.FULL:
            return KernelJail(found.landlock_abi, found["broker"].ok, found.bwrap)
        case Tier.KERNEL:
            return KernelJail(found.landlock_abi, found["broker"].ok)
        case Tier.SEATBELT:
            return SeatbeltJail(Path.home())
        case _:
            return Unconfined()


def _refusal(policy: SandboxPolicy, found: Layers, tier: Tier) -> JailRefusal:
    wanted = policy.lowest
    missing = [found[name] for name in _NEEDS.get(wanted, ("seatbelt",)) if not found[name].ok]
    said = "; ".join(
        f"{report.name}: {report.reason}" + (f" — {report.fix}" if report.fix else "") for report in missing
    )
    reason = f"No command may run: the policy requires the jail {wanted}, and this machine gives {tier}."
    return JailRefusal(
        f"{reason} {said}. Only the operator can accept {tier}: once with --accept-tier {tier.lower()}"
        + (", for good with accept_paths in pilothouse.toml." if tier is Tier.PATHS else "."),
        tuple(report.name for report in missing),
        reason,
    )


def gets_through(tier: Tier, found: Layers) -> tuple[str, ...]:
    """What a command in this tier can still learn or do outside, in words; sandbox spec §3.1."""
    if tier is Tier.PATHS:
        return ("everything that the user running Pilothouse can do",)
    held = found["broker"].ok
    if tier is Tier.KERNEL:
        return _SEEN if held else (*_SEEN, _CHANGED)
    return () if held or tier is not Tier.FULL else (_NODES,)
