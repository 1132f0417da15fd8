"""The Unified Memory System: what agents remember over time, a projection of the journal."""
