"""A terminal inside a pane: the byte stream, the screen and the keys."""
