"""Questions that the journal answers: why, search, reports, recaps, drift."""
