"""A profile for the macOS sandbox. NOT TESTED on macOS: only its text and its quoting are.

`sandbox-exec` is deprecated and has no successor for command-line programs. Writes are confined to the
root and the network follows the policy; reads stay broad, with the places of secrets denied, because
fragmented lists of what may be read are known to kill processes on current systems. Source: sandbox spec
§4 (macOS), §5.1; §6 case 100.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.sandbox.confinement import Confined, Launch
from engine.sandbox.policy import Network, PolicyError, SandboxPolicy, Tier

PROGRAM = "/usr/bin/sandbox-exec"
_SECRETS = (
    *(".ssh", ".aws", ".gnupg", ".config", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc"),
    *(".git-credentials", ".pilothouse", "Documents", "Desktop", "Downloads", "Library/Keychains"),
    *("Library/Application Support", "Library/Cookies", "Library/Mail", "Library/Messages"),
)
"""Below the operator's home."""
_WRITABLE_DEVICES = ("/dev/null", "/dev/zero", "/dev/dtracehelper")


def quoted(text: str) -> str:
    """The text as a string of the profile language, whatever it holds.

    Raises:
        PolicyError: it holds a control character, which the language has no way to write.
    """
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise PolicyError(f"the path {text!r} holds a control character and cannot be confined")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def profile(root: Path, policy: SandboxPolicy, home: Path) -> str:
    """The profile that holds a command to the root.

    Args:
        root: the sandbox root, without links.
        policy: network and read-only places.
        home: the operator's own home, where secrets lie.

    Raises:
        PolicyError: a path cannot be written down.
    """
    here = quoted(str(root))
    lines = ["(version 1)", "(deny default)", '(import "system.sb")', "(allow process-fork process-exec)"]
    lines += ["(allow signal (target same-sandbox))", "(allow sysctl-read)", "(allow file-read*)"]
    lines += [f"(deny file-read* (subpath {quoted(str(home / name))}))" for name in _SECRETS]
    lines += [f"(allow file-read* (subpath {quoted(path)}))" for path in policy.read_only]
    lines += [f"(allow file-read* file-write* (subpath {here}))"]
    lines += [f"(allow file-write* (literal {quoted(path)}))" for path in _WRITABLE_DEVICES]
    lines += [
        f"(deny file-read* file-write* (subpath {quoted(str(root / name))}))" for name in policy.protected
    ]
    return "\n".join([*lines, *_network(policy)]) + "\n"


def _network(policy: SandboxPolicy) -> list[str]:
    if policy.network is Network.ON:
        return ["(allow network*)"]
    if policy.network is Network.PORTS:
        outbound = [f'(allow network-outbound (remote tcp "*:{port}"))' for port in policy.ports]
        return [*outbound, '(allow network-outbound (literal "/private/var/run/mDNSResponder"))']
    return ["(deny network*)"]


@dataclass(frozen=True, slots=True)
class SeatbeltJail:
    """The macOS sandbox as a confinement; not tested."""

    home: Path
    tier = Tier.SEATBELT

    def confine(self, launch: Launch, root: Path, policy: SandboxPolicy) -> Confined:
        """The supervisor runs within `sandbox-exec`."""
        return Confined(outer=(PROGRAM, "-p", profile(root, policy, self.home)))
