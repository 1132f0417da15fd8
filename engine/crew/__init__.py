"""Agents that hand work to each other: types, handoffs, modes, selection and the builder."""
