"""Reflection, consolidation and upkeep: what is due, and who runs it in the background."""
