"""How long a test waits for what must come."""

PATIENCE_S = 120.0
"""Seconds: far away, so that a slow or crowded machine is only slow; no test asserts how fast it is."""
