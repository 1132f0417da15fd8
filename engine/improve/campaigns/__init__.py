"""Campaigns of improvement: goals, candidates, trials, applying and rolling back."""
