"""The tools that agents and operators can call.

A tool's name, a command and its arguments enter; a `ToolResult` leaves. The registry knows which tools
there are and checks arguments; `SimpleCoder` is the sandboxed session. Tools are called by the action
pipeline only (and by the stand-alone SimpleCoder shell, for a person).
"""

from __future__ import annotations

from engine.tools.arguments import Checked, Problem
from engine.tools.registry import ToolRegistry, UnknownToolError
from engine.tools.simple_coder import SimpleCoder

__all__ = ["Checked", "Problem", "SimpleCoder", "ToolRegistry", "UnknownToolError"]
