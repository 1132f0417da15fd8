"""The `pilothouse` command: one module a subcommand, with its arguments, exit codes and JSON."""
