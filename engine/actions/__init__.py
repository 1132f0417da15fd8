"""The action pipeline: the only way a tool is called, for agents, operators and background work alike.

In: a request. Out: events from requested to finished, and the tool's answer.
"""

from engine.actions.pipeline import LiveToolbox, Pipeline, Toolbox
from engine.actions.saving import NoSaver, Saved, Saver, SnapshotRule, Unsaved, WorkspaceSaver

__all__ = [
    "LiveToolbox",
    "NoSaver",
    "Pipeline",
    "Saved",
    "Saver",
    "SnapshotRule",
    "Toolbox",
    "Unsaved",
    "WorkspaceSaver",
]
