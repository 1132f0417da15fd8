"""Projection: events and states in, frozen view models of the panes out.

`views` are pure functions from a state to models; `Projector` folds the event stream, keeps what panes
show of the past, and says which panes are out of date. Nothing here touches a widget.
"""

from app.projection.projector import NOTHING_CHANGED, Pane, Projector

__all__ = ["NOTHING_CHANGED", "Pane", "Projector"]
