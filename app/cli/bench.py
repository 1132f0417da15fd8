"""`pilothouse bench`: benchmarks beside their baselines."""

from __future__ import annotations

import argparse
import json
import sys

from app.cli.options import print_error


def run(options: argparse.Namespace) -> int:
    """Run the benchmarks, or those of one name."""
    try:
        from tests.benchmarks import run_all
    except ImportError:
        return print_error(
            "the benchmarks are part of the source tree: run this in a checkout, or make bench"
        )
    if options.sets is not None:
        return _recall(options)
    none = True
    for row in run_all(options.name):
        none = False
        base = row["baseline"]  # what it is measured against may not be installed
        figures = (
            f"{row['ours']:>12,.1f} vs {base if isinstance(base, str) else f'{base:,.1f}':>12} {row['unit']}"
        )
        ratio = "" if row["ratio"] is None else f" ratio {row['ratio']:.2f}"
        print(f"{row['name']:<44} {figures:<44}{ratio}", file=sys.stderr)
        print(json.dumps(row), flush=True)
    return print_error(f"there is no benchmark '{options.name}'") if none else 0


def _recall(options: argparse.Namespace) -> int:
    """How much of what answers a question memory finds."""
    from tests.benchmarks import retrieval

    if options.name != "memory":
        return print_error("--sets is of one benchmark: pilothouse bench memory --sets FOLDER")
    if not options.sets.is_dir():
        return print_error(
            f"there is no folder {options.sets}: make it; the benchmark says what to put into it"
        )
    measured = (retrieval.choose if options.choose else retrieval.rows)(options.sets)
    if options.model:
        measured = retrieval.with_model(options.sets, options.model)
    for line, row in measured:
        print(line, file=sys.stderr)
        print(json.dumps(row), flush=True)
    return 0
