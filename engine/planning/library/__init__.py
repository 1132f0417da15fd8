"""Shipped recipes and missions as data, and how they are read and matched."""
