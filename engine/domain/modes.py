"""What an agent is allowed to do, what the status line says of it, and where in its cycle it stands."""

from __future__ import annotations

from enum import StrEnum

LOOPS_OVER = "MAX_LOOPS"
"""How the reason of a pause begins when the loops of a run are used up."""


class RunState(StrEnum):
    """What the operator allows the agent to do."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


class Mode(StrEnum):
    """What the status line says (COCKPIT.md, modes)."""

    RUNNING = "RUNNING"
    IDLE = "IDLE"
    """Allowed to run, and nothing to do."""
    PAUSED = "PAUSED"
    STEPPING = "STEPPING"
    WAITING = "WAITING"
    INTERVENTION = "INTERVENTION"
    SHELL = "SHELL"
    """The operator holds the agent's shell."""
    FROZEN = "FROZEN"
    """Its processes stand still."""
    TIMED_OUT = "TIMED_OUT"
    """The loops of its run are used up, and the goal is not done: another run goes on with it."""
    STOPPED = "STOPPED"


HELD_MODES = frozenset({Mode.PAUSED, Mode.TIMED_OUT, Mode.INTERVENTION, Mode.SHELL, Mode.FROZEN})
"""Modes in which what comes next stands still until the operator does something."""


class PausePoint(StrEnum):
    """Where in its cycle a held agent stands."""

    BEFORE_THINKING = "before thinking"
    BEFORE_ACTING = "before acting"
    ACTING = "acting"
    """The action that runs ends by itself; nothing starts after it."""
    NOTHING_TO_DO = "nothing to do"
