"""The search for better plans, prompts, thresholds and tools."""
