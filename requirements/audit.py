"""Ask for known vulnerabilities of what `requirements/` names, by pip-audit; arguments are passed on to it.

Exit codes: 0 none is known, 1 some are, 69 not all could be looked up, so that nothing can be said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FOUND, UNKNOWN = 1, 69
HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """Audit every file here, and say what came out."""
    files = sorted(path for path in HERE.glob("*.txt") if "--hash=" in path.read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--progress-spinner", "off", "-f", "json"]
    done = subprocess.run(
        [*command, *(f"--requirement={path}" for path in files), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        why = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        return _unknown(f"pip-audit ended with {done.returncode} and no result: {why}")
    return outcome(packages)


def outcome(packages: list[dict[str, Any]]) -> int:
    """Say what pip-audit found about each package; the exit code."""
    known = {(each["name"], each["version"]): each["vulns"] for each in packages if each.get("vulns")}
    for (name, version), flaws in sorted(known.items()):
        for flaw in flaws:
            fixed = ", ".join(flaw.get("fix_versions", ())) or "no version yet"
            print(f"{name} {version}: {flaw['id']} {' '.join(flaw.get('aliases', ()))}; fixed in {fixed}")
    skipped = sorted({each["name"] for each in packages if "skip_reason" in each})
    asked = {each["name"] for each in packages} - set(skipped)
    print(
        f"{len(asked)} packages looked up, {len(known)} with known vulnerabilities, {len(skipped)} not found"
    )
    if known:
        return FOUND
    if skipped or not asked:
        named = ", ".join([*skipped[:3], *(["…"] if skipped[3:] else [])])
        return _unknown(
            f"the database has nothing about {named}" if skipped else "there was nothing to look up"
        )
    return 0


def _unknown(why: str) -> int:
    print(
        f"not audited: {why}\nThe database of known vulnerabilities could not be reached, or does not know "
        "them all;\nthat says nothing about the packages. Try on a network that reaches it, or ask another: "
        "audit.py -s osv",
        file=sys.stderr,
    )
    return UNKNOWN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
