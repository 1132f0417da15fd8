"""Full screens of the cockpit, with their own bindings."""
