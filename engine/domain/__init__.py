"""Deprecated: modules under the names by which plug-ins of 0.1 import them."""
