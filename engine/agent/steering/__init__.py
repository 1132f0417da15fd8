"""The gate, approvals, breakpoints, budgets and rewinds."""
