"""What is held out for the sample project is material, with tests that are meant to fail."""

collect_ignore_glob = ["held_out/*"]
