"""Runs: handoffs as ordinary agents of the engine.

In: handoffs from the manager (`engine.crew.parts.Worker`). Out: commands to the engine, and what became of
runs (`engine.crew.parts.Watcher`).
"""
