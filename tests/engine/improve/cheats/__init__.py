"""Planted cheats: candidates that try to get past the judge, each with what it tries."""
