"""Plans that a model writes for a BDI agent, from the prompt to the metrics."""
