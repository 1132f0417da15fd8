"""The commands of SimpleCoder: their arguments and what they may change (`simple_coder_commands.toml`)."""

from __future__ import annotations

from engine.tools.command_table import read_commands

COMMANDS = read_commands(__file__)
"""Commands by name, in the order of `help`."""


def help_text() -> str:
    """One line for each command: how it is called and what it does."""
    lines = []
    for spec in COMMANDS.values():
        words = [spec.name, *(p.name if p.required else f"[{p.name}]" for p in spec.parameters)]
        lines.append(f"{' '.join(words):<28} {spec.description}")
    return "\n".join(lines)
