"""The dialogs, each beside its frozen view model."""
