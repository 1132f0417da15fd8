"""Questions that the journal answers: why, search, recaps, drift."""
