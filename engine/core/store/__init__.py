"""The journal's store: its port, SQLite behind it, blobs, and the verification of the hash chain."""

JOURNAL = "PILOTHOUSE_JOURNAL"
"""The environment's word for the URL of a journal that is not in a file."""
