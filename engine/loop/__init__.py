"""The Agent Master Loop: one think–act cycle after another, steered by the operator.

In: commands, and the ports (thinker, tools, clock). Out: events of the agent's stream.
"""

from engine.loop.agent import Agent
from engine.loop.recording import Surroundings

__all__ = ["Agent", "Surroundings"]
