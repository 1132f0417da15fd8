"""Files beneath a sandbox root that another place shares.

Opened for writing by a program, a file with a hard link outside of the root changes there too, and no jail
can hold that: the file is in the root. It comes of roots that were filled by links, as `git clone --local`
and some installers do. Source: sandbox spec §3.3, §6 case 16.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.sandbox.files import SandboxFiles
from engine.sandbox.names import shown

EXAMPLES = 3


@dataclass
class Shared:
    """What of a root is not the root's alone."""

    count: int = 0
    """Files that have a name outside of the root."""
    examples: list[str] = field(default_factory=list)
    """Paths of the first few, relative to the root, as text; see `engine.sandbox.names`."""
    whole: bool = True
    """Whether all of the root was looked at, as far as the policy's limits on its size go."""


def shared_files(files: SandboxFiles) -> Shared:
    """Files with more names than the root holds; blocking, links are not followed."""
    names = files.names()
    outside = names.shared()
    return Shared(len(outside), [shown(path) for path in outside[:EXAMPLES]], names.whole)
