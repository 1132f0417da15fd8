"""Files beneath the root, programs in the jail, terminals and policies."""
