"""How each type of agent works: debate, guided session, pipeline and role."""
