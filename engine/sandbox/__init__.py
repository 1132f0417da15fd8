"""The sandbox: files beneath one root, and programs that leave no process behind.

Paths, argument lists and a policy enter; file contents, process results and refusals with a structured
code leave. File commands are held to the root by descriptors. Programs get limits, a clean environment
and a supervisor; what keeps them inside the root is a `Confinement`, of which `Unconfined` is none.
"""

from __future__ import annotations

from engine.sandbox.files import Listing, SandboxFiles
from engine.sandbox.paths import PathError
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.process import Confinement, Ended, Launch, Launcher, ProcessResult, Unconfined

__all__ = [
    "Confinement",
    "Ended",
    "Launch",
    "Launcher",
    "Listing",
    "PathError",
    "ProcessResult",
    "SandboxFiles",
    "SandboxPolicy",
    "Unconfined",
]
