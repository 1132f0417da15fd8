"""Snapshots of a workspace's files, so that an action can be undone.

A directory tree enters; an id leaves that stands for it byte for byte, and differences between two ids, and
the way back to one. What agents do to a tree cannot hurt the snapshotter: every path is opened by descriptor.
"""

from __future__ import annotations

from engine.snapshots.errors import SnapshotDamaged, SnapshotError, SnapshotMissing
from engine.snapshots.policy import SnapshotPolicy
from engine.snapshots.report import Changes, Restoration, Skipped, SnapshotInfo, Standing
from engine.snapshots.store import standing
from engine.snapshots.workspace import Snapshots

__all__ = [
    "Changes",
    "Restoration",
    "Skipped",
    "SnapshotDamaged",
    "SnapshotError",
    "SnapshotInfo",
    "SnapshotMissing",
    "SnapshotPolicy",
    "Snapshots",
    "Standing",
    "standing",
]
