"""Replaced below."""
