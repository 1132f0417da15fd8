"""The action pipeline: the only way a tool is called, for agents, operators and background work alike.

In: a request. Out: events from requested to finished, and the tool's answer.
"""

from engine.actions.pipeline import LiveToolbox, Pipeline, Toolbox

__all__ = ["LiveToolbox", "Pipeline", "Toolbox"]
