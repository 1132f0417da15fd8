"""The types of agents and what they exchange, as plain values; what checks and counts them."""
