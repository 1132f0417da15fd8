"""A missing layer gives the next tier or a refusal, never a weaker jail in silence: §6 91-98."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.core.actions import ErrorCode, ResultStatus, SandboxSession
from engine.core.ports import CallContext
from engine.sandbox import jail as bwrap
from engine.sandbox import kernel, landlock
from engine.sandbox import process_table as tree
from engine.sandbox.jail import Confined, KernelJail, Launch, Unconfined
from engine.sandbox.policy import Network, SandboxPolicy, Tier
from engine.sandbox.seccomp import FilterOptions, build_filter
from engine.sandbox.tier import JailRefusal, LayerReport, Layers, best_jail, remaining_access
from engine.tools.simple_coder import SimpleCoder
from tests.engine.sandbox.jail_runs import TIERS, USERS, environment, ids, need, python_of, room
from tests.patience import PATIENCE_S

FRONT = """
import ctypes, errno
from engine.sandbox import kernel
from engine.sandbox import seccomp as bpf
from engine.sandbox.syscall_numbers import Numbers
def forbid(numbers, code):
    program = bpf.Assembler()
    program.load(bpf.NUMBER)
    for number in numbers:
        after = program.fresh()
        program.equal(number, no=after)
        program.end(bpf.errno_action(code))
        program.label(after)
    program.end(bpf.ALLOW)
    kernel.forbid_new_privileges()
    kernel.install_filter(program.assemble())
"""
"""A seccomp filter that stands in for a kernel without something."""
PROBE = """
import json
from engine.sandbox.tier import probe
from engine.sandbox.tier import best_tier
found = probe()
print(json.dumps([best_tier(found), {r.name: [r.ok, r.reason, r.fix] for r in found.reports}]))
"""
WITHOUT_LANDLOCK = FRONT + "forbid([444, 445, 446], errno.{})"
WITHOUT_NAMESPACES = (
    FRONT + "numbers = Numbers(kernel.MACHINE)\nforbid(numbers.of('unshare'), errno.EPERM)\n"
    "forbid(numbers.of('clone3'), errno.ENOSYS)\n"
    "program = bpf.Assembler(); after = program.fresh(); program.load(bpf.NUMBER)\n"
    "program.equal(numbers.of('clone')[0], no=after)\nprogram.load(bpf.low(0))\n"
    "hit = program.fresh(); program.any_bit(0x7E020000, yes=hit); program.end(bpf.ALLOW)\n"
    "program.label(hit); program.end(bpf.errno_action(errno.EPERM)); program.label(after)\n"
    "program.end(bpf.ALLOW); kernel.install_filter(program.assemble())"
)


FILTER = build_filter(FilterOptions(), kernel.MACHINE)


def probed(front: str, user: str) -> tuple[str, dict[str, list[Any]]]:
    done = subprocess.run(
        [python_of(user), "-c", front + PROBE],
        capture_output=True, text=True, env=environment(), cwd="/", timeout=PATIENCE_S, check=True,
        **ids(user),
    )  # fmt: skip
    tier, reports = json.loads(done.stdout)
    return tier, reports


def layers_with(*working: str, abi: int = 7) -> Layers:
    names = ("landlock", "seccomp", "namespaces", "broker")
    reports = tuple(
        LayerReport(n, n in working, "" if n in working else f"no {n}", f"get {n}") for n in names
    )
    return Layers(reports, abi if "landlock" in working else 0, "/usr/bin/bwrap")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("error", ["ENOSYS", "EPERM", "EOPNOTSUPP"])
def test_without_landlock_no_jail_is_left_and_the_reason_is_told(user: str, error: str) -> None:
    need(Tier.KERNEL)
    tier, reports = probed(WITHOUT_LANDLOCK.format(error), user)
    assert tier == Tier.PATHS
    ok, reason, fix = reports["landlock"]
    assert (
        ok,
        error.lower().lstrip("e") in reason.lower()
        or os.strerror(getattr(__import__("errno"), error)) in reason,
    ) == (False, True)
    assert fix


@pytest.mark.parametrize("user", USERS)
def test_where_namespaces_are_forbidden_the_tier_is_kernel(user: str) -> None:
    need(Tier.FULL)
    tier, reports = probed(WITHOUT_NAMESPACES, user)
    assert tier == Tier.KERNEL
    assert reports["namespaces"][0] is False
    assert "namespace" in reports["namespaces"][1]
    assert "user namespaces" in reports["namespaces"][2]


def test_without_seccomp_there_is_no_jail() -> None:
    front = "forbid([317 if kernel.MACHINE == 'x86_64' else 277], errno.EINVAL)"
    tier, reports = probed(FRONT + front, "this user")
    assert tier == Tier.PATHS
    assert reports["seccomp"][0] is False


def test_a_policy_that_is_not_met_is_a_refusal_that_says_what_is_missing() -> None:
    """Behaviour 63."""
    refused = best_jail(SandboxPolicy(), layers_with("seccomp"))
    assert isinstance(refused, JailRefusal)
    assert refused.missing == ("landlock",)
    for words in ("requires the jail KERNEL", "this machine gives PATHS", "no landlock", "get landlock"):
        assert words in refused.message
    stronger = best_jail(SandboxPolicy(require=Tier.FULL), layers_with("landlock", "seccomp"))
    assert isinstance(stronger, JailRefusal)
    assert stronger.missing == ("namespaces",)


def test_unconfined_is_given_only_where_the_operator_accepted_it() -> None:
    none = layers_with()
    assert isinstance(best_jail(SandboxPolicy(require=Tier.PATHS), none), JailRefusal)
    assert isinstance(best_jail(SandboxPolicy(accept_paths=True), none), Unconfined)
    best = best_jail(SandboxPolicy(accept_paths=True), layers_with("landlock", "seccomp"))
    assert isinstance(best, KernelJail)


def test_ports_need_a_landlock_that_knows_them() -> None:
    policy = SandboxPolicy(network=Network.PORTS)
    refused = best_jail(policy, layers_with("landlock", "seccomp", abi=3))
    assert isinstance(refused, JailRefusal)
    assert "ABI 4" in refused.message
    assert not isinstance(best_jail(SandboxPolicy(), layers_with("landlock", "seccomp", abi=3)), JailRefusal)


def test_each_tier_names_what_gets_through() -> None:
    found = layers_with("landlock", "seccomp", "broker")
    assert len(remaining_access(Tier.KERNEL, found)) == 6
    assert len(remaining_access(Tier.KERNEL, layers_with("landlock", "seccomp"))) == 7
    assert remaining_access(Tier.FULL, found) == ()
    assert len(remaining_access(Tier.FULL, layers_with("landlock", "seccomp"))) == 1


async def test_without_a_jail_the_session_runs_nothing_and_says_why(tmp_path: Path) -> None:
    """Behaviour 63."""
    refusal = best_jail(SandboxPolicy(), layers_with())
    assert isinstance(refusal, JailRefusal)
    tool = SimpleCoder(tmp_path, confinement=refusal)
    context = CallContext(SandboxSession(), "agent")
    for command, args in (("run", {"command": "touch ran"}), ("create_venv", {"venv_name": "v"})):
        answer = await tool.call(command, args, context)
        assert (answer.status, answer.code) == (ResultStatus.ERROR, ErrorCode.NOT_ALLOWED)
        assert "get landlock" in answer.message or "get landlock" in answer.data["message"]
    assert (await tool.call("ls", {}, context)).data["items"] == []
    tool.close()


@pytest.mark.parametrize("step", ["landlock", "seccomp", "supervisor", "start"])
async def test_a_step_that_fails_means_125_and_the_command_does_not_run(tmp_path: Path, step: str) -> None:
    need(Tier.KERNEL)

    class Broken:
        tier = Tier.KERNEL

        def confine(self, launch: Launch, root: Path, policy: SandboxPolicy) -> Confined:
            rules = {"files": 1 << 60, "ports": 0, "scope": 0, "paths": (), "connect": ()}
            return {
                "landlock": Confined(rules=rules),
                "seccomp": Confined(filter=b"\xff" * 8),
                "supervisor": Confined(filter=FILTER, broker=(str(tmp_path / "gone"),)),
                "start": Confined(outer=("/bin/false",)),
            }[step]

    tool = SimpleCoder(tmp_path, confinement=Broken())
    answer = await tool.call("run", {"command": "touch ran"}, CallContext(SandboxSession(), "agent"))
    assert (answer.status, answer.code) == (ResultStatus.ERROR, ErrorCode.NOT_ALLOWED), answer
    assert answer.data["return_code"] == 125
    assert f"{step}: " in answer.data["message"]
    assert not (tmp_path / "ran").exists()
    tool.close()


# kill(-1) is never sent unless it is proven to reach nobody outside: §5.4


def test_the_guard_refuses_with_the_ruleset_stubbed_out() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert tree.out_of_reach([child.pid]) is False
        assert tree.out_of_reach([os.getppid(), child.pid]) is False
    finally:
        child.communicate(b"\n")


def test_a_process_that_is_gone_or_anothers_and_no_process_prove_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert tree.out_of_reach([child.pid]) is False
    assert tree.out_of_reach([]) is False


def test_without_the_guard_only_the_tree_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(tree.os, "kill", lambda *call: killed.append(call))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        tree.kill_all(False, os.getpid())
    finally:
        monkeypatch.undo()
        child.communicate(b"\n")
    assert (child.pid, 9) in killed
    assert all(pid > 0 for pid, _ in killed)


# What is used and what is not


def test_a_bwrap_that_others_could_have_written_is_not_used(tmp_path: Path) -> None:
    planted = tmp_path / "bwrap"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    tmp_path.chmod(0o777)
    assert bwrap.find_bwrap([str(planted)]) is None
    assert bwrap.find_bwrap([str(tmp_path / "missing")]) is None


@pytest.mark.parametrize(
    ("version", "last"), [(1, 12), (2, 13), (3, 14), (4, 14), (5, 15), (7, 15), (99, 16)]
)
def test_a_landlock_version_has_the_rights_it_knows(version: int, last: int) -> None:
    assert landlock.handled_files(version) == (1 << (last + 1)) - 1
    assert bool(landlock.handled_ports(version)) == (version >= 4)
    assert bool(landlock.scopes(version)) == (version >= 6)


@pytest.mark.parametrize("tier", TIERS)
def test_a_rule_on_a_missing_path_is_passed_over(tier: Tier) -> None:
    need(tier)
    with room("this user") as place:
        done = place.run("/bin/echo", "ran", tier=tier, read_only=["/nowhere/at/all"])
    assert done["stdout"] == "ran"


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5])
async def test_older_rulesets_still_hold_files(tmp_path: Path, tier: Tier, abi: int) -> None:
    need(tier)
    path = bwrap.find_bwrap() if tier is Tier.FULL else None
    tool = SimpleCoder(tmp_path, confinement=KernelJail(abi, True, path))
    context = CallContext(SandboxSession(), "agent")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_text("x")
    script = f"""
import os
for work in (lambda: open({str(outside)!r}), lambda: os.truncate({str(outside)!r}, 0),
             lambda: os.kill({os.getpid()}, 0)):
    try: work(); print("through")
    except OSError: print("stopped")
"""
    done = await tool.call("run", {"command": ["python", "-c", script]}, context)
    outside.unlink()
    tool.close()
    assert done.data["stdout"].split() == ["stopped"] * 3, done
