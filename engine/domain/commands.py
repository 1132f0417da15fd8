"""The commands of the engine under their name of 0.1."""

from engine.core.commands import *  # noqa: F403 - whatever plug-ins of 0.1 imported
