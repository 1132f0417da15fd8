"""The journal's store: its port, SQLite behind it, blobs, and the verification of the hash chain."""
