"""Mastermind: what changes the system itself, and proves that the change is one for the better."""
