"""The internal actions of AgentSpeak(L) programs; importing a module registers its actions in `STANDARD`."""

from engine.bdi.library import agent, collections, reflection, society, terms  # noqa: F401
