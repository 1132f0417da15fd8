"""The sample project is material, with tests of its own that are meant to fail."""

collect_ignore_glob = ["sample/*", "held_out/*"]
