"""The policy: pure data that only ever gets tighter, and is read by agents and never changed by them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.actions import ErrorCode, SandboxSession
from engine.core.ports import CallContext
from engine.sandbox.jail import KernelJail, Unconfined, settings_paths, settings_ports
from engine.sandbox.policy import Network, PolicyError, SandboxPolicy, Tier
from engine.tools.simple_coder import SimpleCoder


def policies() -> st.SearchStrategy[SandboxPolicy]:
    paths = st.lists(st.sampled_from(["/opt", "/opt/a", "/srv/data", "/opt/a/b"]), unique=True).map(tuple)
    return st.builds(
        SandboxPolicy,
        wall_clock_s=st.floats(1, 1000),
        memory_bytes=st.integers(1, 1 << 40),
        disk_floor_bytes=st.integers(1, 1 << 40),
        programs=st.lists(st.sampled_from(["git", "ls", "python"]), unique=True).map(tuple),
        read_only=paths,
        network=st.sampled_from(Network),
        ports=st.lists(st.sampled_from([80, 443, 8080]), unique=True).map(tuple),
        require=st.sampled_from(Tier),
        accept_paths=st.booleans(),
        protected=st.lists(st.sampled_from(["a", "b"]), unique=True).map(tuple),
    )


@given(policies())
def test_a_policy_goes_to_json_and_back(policy: SandboxPolicy) -> None:
    assert SandboxPolicy().changed(json.loads(json.dumps(policy.as_json()))) == policy


def reached(policy: SandboxPolicy) -> set[int]:
    every = set(range(1, 9000))
    return {Network.OFF: set(), Network.PORTS: set(policy.ports), Network.ON: every}[policy.network]


@given(policies(), policies())
def test_tightening_allows_only_what_both_allow(one: SandboxPolicy, other: SandboxPolicy) -> None:
    both = one.tightened(other)
    for side in (one, other):
        assert both.wall_clock_s <= side.wall_clock_s
        assert both.memory_bytes <= side.memory_bytes
        assert both.disk_floor_bytes >= side.disk_floor_bytes
        assert set(both.programs) <= set(side.programs)
        assert set(both.protected) >= set(side.protected)
        assert both.lowest.strength >= side.lowest.strength
        assert reached(both) <= reached(side)
        assert all(any(f"{p}/".startswith(f"{r}/") for r in side.read_only) for p in both.read_only)
    assert one.tightened(one) == one


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"walls": 1}, "no field 'walls'"),
        ({"wall_clock_s": "long"}, "wall_clock_s is float"),
        ({"network": "maybe"}, "off, ports, on"),
        ({"ports": ["http"]}, "list of int"),
        ({"ports": [70_000]}, "no TCP port"),
        ({"accept_paths": 1}, "accept_paths is bool"),
        ({"read_only": ["etc"]}, "absolute paths"),
        ({"read_only": ["/a/../etc"]}, "absolute paths"),
        ({"read_only": ["/"]}, "below /"),
        ({"home": "a/b"}, "no name at the root"),
        ({"processes": 0}, "more than 0"),
        ({"processes": True}, "processes is int"),
    ],
)
def test_a_wrong_policy_is_refused_with_the_field(data: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        SandboxPolicy().changed(data)


def test_nothing_is_granted_by_default() -> None:
    policy = SandboxPolicy()
    assert (policy.network, policy.lowest, policy.read_only) == (Network.OFF, Tier.KERNEL, ())


def test_explanation_names_what_was_granted() -> None:
    policy = SandboxPolicy(network=Network.PORTS, ports=(8443,), read_only=("/srv/data",))
    text = "\n".join(policy.explain())
    assert "8443" in text
    assert "/srv/data" in text
    assert "at least KERNEL" in text


async def test_an_agent_reads_its_policy_and_has_no_way_to_change_it(tmp_path: Path) -> None:
    tool = SimpleCoder(tmp_path, SandboxPolicy(accept_paths=True), confinement=Unconfined())
    context = CallContext(SandboxSession(), "agent")
    answer = await tool.call("policy", {}, context)
    assert answer.data["policy"] == tool.policy.as_json()
    assert answer.data["tier"] == "PATHS"
    assert "NOT confined" in answer.data["content"]
    changed = await tool.call("policy", {"network": "on"}, context)
    assert changed.code is ErrorCode.BAD_ARGUMENTS
    assert not tool.commands["policy"].mutates
    with pytest.raises(AttributeError):
        tool.policy.network = Network.ON  # type: ignore[misc]
    assert {field.name for field in fields(SandboxPolicy)} == set(tool.policy.as_json())
    tool.close()


def test_settings_of_the_index_name_files_and_ports() -> None:
    env = {
        "PIP_FIND_LINKS": "/srv/wheels https://wheels.example/x",
        "PIP_CERT": "/srv/ca.pem",
        "PIP_INDEX_URL": "https://index.example:8443/simple",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "HOME": "/root",
    }
    assert settings_paths(env) == ("/srv/wheels", "/srv/ca.pem")
    assert settings_ports(env) == (8443, 3128)
    assert settings_paths({"PIP_CERT": "/", "PIP_FIND_LINKS": "/a/../b"}) == ()
    # A local index keeps its files beside its `simple` pages; never is a whole top directory meant.
    assert settings_paths({"PIP_INDEX_URL": "file:///srv/index/simple"}) == ("/srv/index",)
    assert settings_paths({"PIP_INDEX_URL": "file:///srv/simple"}) == ("/srv/simple",)
    assert settings_ports({"PIP_INDEX_URL": "https://index.example:port/"}) == ()


async def test_what_belongs_to_pilothouse_is_kept_from_commands_or_none_runs(tmp_path: Path) -> None:
    (tmp_path / ".pilothouse").mkdir()
    (tmp_path / ".pilothouse/journal.db").write_text("the journal")
    context = CallContext(SandboxSession(), "agent")
    weak = SimpleCoder(tmp_path, confinement=KernelJail(7, broker=True))
    answer = await weak.call("run", {"command": "ls -a"}, context)
    assert answer.code is ErrorCode.NOT_ALLOWED
    assert "'.pilothouse' is in the sandbox root" in answer.data["message"]
    weak.close()
    full = SimpleCoder(tmp_path)
    if full.tier is Tier.FULL:
        for command in ("ls .pilothouse", "touch .pilothouse/x", "mv .pilothouse away"):
            assert not (await full.call("run", {"command": command}, context)).data.get("stdout")
        assert [path.name for path in (tmp_path / ".pilothouse").iterdir()] == ["journal.db"]
    full.close()
