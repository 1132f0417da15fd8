"""Python projects that are improved: analysis, findings, fixes and suites of questions."""
