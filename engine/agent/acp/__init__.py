"""Agents of other programs, by the Agent Client Protocol: Claude Code, Codex, Gemini, OpenCode, goose.

What the program asks for (a file, a terminal, leave for a tool of its own) enters as a decision, so that it
passes gate and pipeline as any action does; what leaves are answers. The program runs in the agent's jail.
"""

from __future__ import annotations
