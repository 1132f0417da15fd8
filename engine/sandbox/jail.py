"""The jail: what a policy means for the kernel, as rules, a filter and namespaces.

Source: sandbox spec §2 (what is readable, the rule on Unix sockets), §5.1 (layers and their order).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engine.sandbox import bwrap, kernel, landlock, places
from engine.sandbox.confinement import Confined, FileRules, Launch
from engine.sandbox.policy import Network, SandboxPolicy, Tier
from engine.sandbox.seccomp import FilterOptions, build_filter

_TCP_ABI, _SCOPE_ABI, _RESOLVE_UNIX_ABI = 4, 6, 9
_built = lru_cache(maxsize=64)(build_filter)


@dataclass(frozen=True, slots=True)
class KernelJail:
    """Landlock and seccomp, in namespaces where there is a bwrap: tiers KERNEL and FULL."""

    landlock_abi: int
    """What this kernel supports, from 1."""
    broker: bool
    """Whether the filter can hand calls to the supervisor."""
    bwrap: str | None = None
    """Absolute path of bubblewrap; None without namespaces."""

    @property
    def tier(self) -> Tier:
        """FULL with namespaces, else KERNEL."""
        return Tier.KERNEL if self.bwrap is None else Tier.FULL

    def confine(self, launch: Launch, root: Path, policy: SandboxPolicy) -> Confined:
        """How to hold this program."""
        if policy.network is not Network.OFF:
            ports = (*policy.ports, *places.settings_ports(launch.env))
            read = (*policy.read_only, *places.settings_paths(launch.env))
        else:
            ports, read = (), policy.read_only
        readable = (*places.interpreter(), *read)
        namespaces = self.bwrap is not None
        return Confined(
            outer=(self.bwrap,) if self.bwrap is not None else (),
            outer_arguments=bwrap.arguments(root, policy, readable, launch.terminal) if namespaces else (),
            rules=self._rules(root, policy, readable, ports, launch.terminal),
            filter=_built(self._options(policy), kernel.MACHINE),
            broker=self._brokered(root),
            scope=self.landlock_abi >= _SCOPE_ABI,
            namespaces=namespaces,
        )

    def _brokered(self, root: Path) -> tuple[str, ...]:
        if not self.broker:
            return ()
        return (str(root),) if self.bwrap is None else (str(root), *bwrap.SCRATCH)

    def _rules(
        self,
        root: Path,
        policy: SandboxPolicy,
        readable: tuple[str, ...],
        ports: tuple[int, ...],
        terminal: str,
    ) -> FileRules:
        paths = [(path, landlock.READ) for path in (*places.SYSTEM, *readable)]
        paths += [(path, landlock.LOOK) for path in places.SETTINGS]
        paths += [(path, landlock.DEVICE) for path in places.DEVICES]
        commanded = landlock.DEVICE | landlock.READ_DIR | landlock.IOCTL_DEV
        if self.bwrap is None:
            paths += [(path, landlock.LOOK) for path in places.FACTS]
            paths += [(path, commanded) for path in ("/dev/tty", terminal) if terminal]
        else:
            paths += [("/proc", landlock.LOOK), ("/dev", landlock.READ_DIR)]
            paths += [(path, commanded) for path in ("/dev/tty", "/dev/pts", "/dev/ptmx", bwrap.CONSOLE)]
            paths += [(path, landlock.ALL_BUT_DEVICES) for path in bwrap.SCRATCH]
        paths.append((str(root), landlock.ALL_BUT_DEVICES))
        open_network = policy.network is Network.ON
        return FileRules(
            files=landlock.handled_files(self.landlock_abi),
            ports=0 if open_network else landlock.handled_ports(self.landlock_abi),
            scope=landlock.scopes(self.landlock_abi),
            paths=tuple(paths),
            connect=tuple(dict.fromkeys(ports)) if policy.network is Network.PORTS else (),
        )

    def _options(self, policy: SandboxPolicy) -> FilterOptions:
        scoped = self.landlock_abi >= _SCOPE_ABI
        namespaces = self.bwrap is not None
        held_by_pid = () if scoped or namespaces else (os.getpid(), -os.getpgrp(), -1)
        return FilterOptions(
            network=policy.network,
            unix_sockets=self._unix_sockets_are_safe(policy),
            namespaces=namespaces,
            broker=self.broker,
            landlock_abi=self.landlock_abi,
            protected=held_by_pid,
        )

    def _unix_sockets_are_safe(self, policy: SandboxPolicy) -> bool:
        """No socket of the host can be named: neither by path nor by an abstract name."""
        if self.landlock_abi >= _RESOLVE_UNIX_ABI:
            return True
        own_names = policy.network is Network.OFF or self.landlock_abi >= _SCOPE_ABI
        return self.bwrap is not None and own_names

    def lacks(self, policy: SandboxPolicy) -> str:
        """What of the policy this jail cannot hold, in words; empty when it holds all."""
        if policy.network is Network.PORTS and self.landlock_abi < _TCP_ABI:
            return (
                f"the network `ports` needs Landlock ABI {_TCP_ABI}, a kernel since 6.7; this one has ABI "
                f"{self.landlock_abi}. Choose the network `off` or `on`"
            )
        return ""
