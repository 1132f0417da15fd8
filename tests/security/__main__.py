"""Try every case of the catalogue on this machine and print the table; 1 when something got through."""

from __future__ import annotations

import argparse
import sys
import textwrap
import time

from tests.security import report, surroundings
from tests.security.cases import CASES
from tests.security.measure import measure


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.security", description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each group's race; 5 unless told")
    parser.add_argument("--entries", type=int, default=200_000, help="names in the large directory")
    options = parser.parse_args()
    begun = time.monotonic()
    print(report.heading(), flush=True)
    print("\n".join(surroundings.lines()), flush=True)

    def tell(words: str) -> None:
        print(f"{time.monotonic() - begun:>6.0f} s  {words}", flush=True)

    measured = measure(CASES, seconds=options.seconds, entries=options.entries, tell=tell)
    failed = report.failures(CASES, measured)
    lines = ["", *report.table(CASES, measured, markdown=options.markdown), *report.LEGEND, ""]
    lines += [*report.summary(CASES, measured), *report.seen(CASES, measured), ""]
    lines += [*report.races(measured, options.seconds), "", *report.missing(CASES, measured), ""]
    lines += failed or [f"everything that must be stopped was stopped ({time.monotonic() - begun:.0f} s)"]
    for line in lines:
        wrapped = [line] if options.markdown else textwrap.wrap(line, report.WIDTH, subsequent_indent="    ")
        print("\n".join(wrapped or [""]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
