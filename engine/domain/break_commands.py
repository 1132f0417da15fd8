"""Commands on breakpoints and on the trace of a reasoner."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.domain.command import Command


class SetBreakpoint(Command):
    """Hold the agent before a step, or no longer."""

    do: Literal["set_breakpoint"] = "set_breakpoint"
    step: str
    on: bool = True


class BreakOn(Command):
    """Hold a reasoner where a belief, goal, plan or error comes up."""

    do: Literal["break_on"] = "break_on"
    on: Literal["step", "belief", "goal", "plan", "error"]
    pattern: str = Field(min_length=1, max_length=1_000)
    """An action, belief or goal with variables, the label of a plan, or an error id."""


class SetBreak(Command):
    """Hold an agent where something comes; see `engine.domain.break_lines`."""

    do: Literal["set_break"] = "set_break"
    line: str = Field(min_length=1, max_length=1_000)
    """Such as `tool write path=*.toml when failures > 2 after 3 once`."""


class ChangeBreak(Command):
    """Switch a breakpoint on or off, or clear it."""

    do: Literal["change_break"] = "change_break"
    breakpoint: str
    enabled: bool = True
    cleared: bool = False


class SetTracing(Command):
    """Journal every change of beliefs, events and intentions, or no longer."""

    do: Literal["set_tracing"] = "set_tracing"
    on: bool


BreakCommand = SetBreakpoint | BreakOn | SetBreak | ChangeBreak | SetTracing
