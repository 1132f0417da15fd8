"""What commands lead to: pure functions from a state and a command to events or a refusal."""
