"""What of the system itself can be better, found without a model: components, audits, searches, suites."""
