"""Public packages with planted bugs and slownesses: what campaigns without a model find and promote."""
