"""The controllers of the cockpit: one object a concern, each handed what it needs."""
