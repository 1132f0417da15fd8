"""The sandbox: files beneath one root, and programs in a jail that leave no process behind.

Paths, argument lists and a policy enter; file contents, process results and refusals with a structured
code leave. File commands are held to the root by descriptors, programs by the firmest jail that the
machine gives (`best_jail`): Landlock, seccomp, and namespaces where bubblewrap is installed.
"""

from __future__ import annotations

from engine.sandbox.confinement import Confinement, Launch, Unconfined
from engine.sandbox.files import Listing, SandboxFiles
from engine.sandbox.paths import PathError
from engine.sandbox.policy import Network, PolicyError, SandboxPolicy, Tier
from engine.sandbox.probe import LayerReport, Layers, layers
from engine.sandbox.process import Ended, Launcher, ProcessResult
from engine.sandbox.report import SandboxReport
from engine.sandbox.tier import JailRefusal, best_jail, gets_through

__all__ = [
    "Confinement",
    "Ended",
    "JailRefusal",
    "Launch",
    "Launcher",
    "LayerReport",
    "Layers",
    "Listing",
    "Network",
    "PathError",
    "PolicyError",
    "ProcessResult",
    "SandboxFiles",
    "SandboxPolicy",
    "SandboxReport",
    "Tier",
    "Unconfined",
    "best_jail",
    "gets_through",
    "layers",
]
