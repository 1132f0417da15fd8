"""From events and states to the frozen view models of the panes; pure functions."""
