"""Mastermind: what changes the system itself and proves that it became better."""
