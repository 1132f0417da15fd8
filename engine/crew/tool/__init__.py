"""The tool by which agents of a crew work: hand over, debate, return results."""
