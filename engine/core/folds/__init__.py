"""How events change an agent's state, a module a noun."""
