"""Breakpoints on what a reasoner believes, pursues, chooses and fails at."""

from __future__ import annotations


def check_pattern(on: str, pattern: str) -> str:
    """What is wrong with a pattern; empty when it can be used."""
    return ""
