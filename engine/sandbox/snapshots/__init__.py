"""Content-addressed snapshots of the workspace: take, compare, restore."""
