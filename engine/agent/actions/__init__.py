"""The one pipeline that every action passes, and the saving of the workspace before it."""
