"""Names of 0.1 that plug-ins import, kept for one version; `engine.core` has them now."""
