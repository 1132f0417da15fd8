"""The panes of the cockpit, each beside its frozen view model."""
