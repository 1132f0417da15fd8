"""Deterministic replay: a recorded stream run again through the real engine, without its surroundings.

What came from outside (commands, output, the opening of sessions) is fed in where it was recorded;
what tools and thinkers answered is taken from the record; everything else the agent must do again
by itself. The replay matches when every event, and so the head hash, comes out the same.
"""

from __future__ import annotations

from engine.replay.replaying import Replay, replay_stream

__all__ = ["Replay", "replay_stream"]
