"""One agent: its loop, the decisions on commands, the gate, actions and recovery."""
