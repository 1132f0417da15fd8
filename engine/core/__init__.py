"""The nouns with their values, events and commands, the fold, and the store of the journal."""
