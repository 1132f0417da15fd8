"""Whether a candidate is better: two trees asked the same questions in the jail."""
