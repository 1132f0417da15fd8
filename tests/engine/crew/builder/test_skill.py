"""Phases 1 and 2: skills are read as the spec says, judged as the standard judges them, and typed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.crew.builder.architecture import decide_type
from engine.crew.builder.findings import Findings
from engine.crew.builder.phases import check_quotes
from engine.crew.builder.reading import Reading, read_body
from engine.crew.builder.skill import SkillDefinition, parse_skill, read_folder
from engine.crew.ontology.kinds import AgentType
from engine.tools.mcp.names import tokens_of
from tests.engine.crew.builder.corpus import SKILLS, laid, lay, plain, skill
from tests.engine.crew.builder.folders import from_text
from tests.rounds import rounds


def read(folder: Path) -> tuple[SkillDefinition | None, Findings]:
    found = Findings()
    files = read_folder(folder, found)
    return (parse_skill(files, found) if files else None), found


def read_text(data: bytes) -> tuple[SkillDefinition | None, Findings]:
    found = Findings()
    return parse_skill(from_text(data), found), found


def codes(found: Findings) -> set[str]:
    return {one.code for one in found.all}


def test_heads_are_read_as_specified(tmp_path: Path) -> None:
    """Line 47."""
    said = {name: read(laid(tmp_path, name))[0] for name in SKILLS}
    assert all(one is not None for one in said.values())
    bodies = {name: one.body for name, one in said.items() if one}
    assert bodies["with-crlf"] == b"# One\r\n\r\ntext\r\n"
    assert bodies["head-only"] == b""
    assert bodies["dashes-in-body"] == b"\nOne\n\n---\n\nTwo\n---\nthree\n"
    assert said["dashes-in-value"].description == "left --- right"
    assert said["long-name"].name == "abcdefghi-" * 7 + "x"
    assert len(said["long-name"].id) == 64
    assert said["unquoted-colon"].description == "Use when: the user asks: why"
    assert said["comma-tools"].allowed_tools == ("Bash(git add:*)", "Bash(jq:*)", "Read", "Task")
    assert said["block-tools"].allowed_tools == ("Read", "Bash(npm run test:*)")
    assert said["inline-metadata"].metadata == {"author": "me", "version": "1.10"}
    assert said["version-ten"].declared("version") == "1.10"
    assert (said["on"].name, said["on"].description) == ("on", "yes")
    assert tokens_of("Bash(git add:*), Bash(jq:*)\nRead") == ("Bash(git add:*)", "Bash(jq:*)", "Read")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "NO_FRONTMATTER"),
        (b"# Only a body\n", "NO_FRONTMATTER"),
        (b" ---\nname: x\n---\n", "NO_FRONTMATTER"),
        (b"---\nname: x\ndescription: y\n", "UNCLOSED_FRONTMATTER"),
        (b"---\n---\n", "NOT_A_MAPPING"),
        (b"---\n- a\n- b\n---\n", "NOT_A_MAPPING"),
        (b"---\nname: [x\n  y: :\n---\n", "BAD_YAML"),
        (b"---\n\tname: x\n---\n", "BAD_YAML"),
        (b"---\nname: a\nname: b\ndescription: c\n---\n", "DUPLICATE_KEY"),
        (b"---\nname: &a x\ndescription: *a\n---\n", "YAML_ALIAS"),
        (b"---\nname: !!python/object:os.system x\ndescription: y\n---\n", "YAML_TAG"),
        (b'---\nname: x\nother: ["\\ud83e"]\ndescription: y\n---\n', "BAD_YAML"),
        (b"---\nname: x\ndescription: ''\n---\n", "NO_DESCRIPTION"),
        (b"---\nname: x\n---\n", "NO_DESCRIPTION"),
        ("---\nname: x\n---\n".encode("utf-16"), "ENCODING"),
        (b"---\nname: x\ndescription: \xff\n---\n", "ENCODING"),
        (b"---\nname: x\ndescription: y\n---\n\0", "ENCODING"),
        (b"---\nname: x\nextra: " + b"y" * 70_000 + b"\n---\n", "TOO_BIG"),
        (b"---\nname: x\ndescription: y\n---\n" + b"z" * (2 * 1024 * 1024 + 1), "TOO_BIG"),
        (b"---\nname: x\ndescription: y\n---\n\n---\nname: z\ndescription: w\n---\n", "TWO_FRONTMATTERS"),
        (b"---\nname: x\ndescription: y\nother: " + b"[" * 2_000 + b"\n---\n", "BAD_YAML"),
    ],
)
def test_what_is_no_skill_is_one_clear_error(data: bytes, code: str) -> None:
    definition, found = read_text(data)
    assert definition is None or code == "TOO_BIG"
    assert [one.code for one in found.errors] == [code]
    assert "\n" not in found.errors[0].message


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_bring_it_down(data: bytes, headed: bool) -> None:
    read_text(b"---\nname: x\ndescription: y\n" + data if headed else data)


WITH_HEADS = [one["SKILL.md"] for one in SKILLS.values()]
PIECES = [
    *(
        b"---\n",
        b"--- \n",
        b"...\n",
        b": ",
        b"- ",
        b"|\n",
        b">-\n",
        b'"',
        b"'",
        b"&a ",
        b"*a",
        b"!!map ",
        b"{",
        b"]",
    ),
    *(
        b"\t",
        b"\r",
        b"\0",
        b"\x07",
        b"\xff",
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\xf0\x9f\xa6\x9c",
        b"```\n",
        b"<!--",
    ),
    *(
        b"name: ",
        b"description: ",
        b"metadata:\n  a: ",
        b"allowed-tools: Bash(",
        b"type: ",
        b"version: ",
        b"## Step 1: ",
    ),
    *(b"\xc2\xb2. ", b"## Step \xd9\xa3: x\n", b"[a](../b)", b"`mcp__a__b`", b"[" * 40),
]


@given(st.sampled_from(WITH_HEADS), st.data())
@settings(max_examples=rounds(300, full=1_500), deadline=None)
def test_a_broken_skill_is_read_or_told_with_its_place(whole: bytes, data: st.DataObject) -> None:
    said = bytearray(whole[:3_000])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(said), 300)))
        piece = data.draw(st.sampled_from([b"", *PIECES]))
        said[at : at + data.draw(st.integers(0, 12))] = piece
    definition, found = read_text(bytes(said))
    assert (definition is None) == bool(found.errors)
    assert all(one.where.startswith("SKILL.md") for one in found.errors)
    if definition is not None:
        assert bytes(said).endswith(definition.body)
        assert check_quotes(definition).passed


def test_heads_that_clients_read_are_repaired_and_faults_told_where_they_are() -> None:
    head = (
        b"---\nname: x\ndescription: Does it.\n  Use when: asked\n  twice\nsummary: In short: it does\n"
        b"metadata:\n  a: b\n---\nbody\n"
    )
    said, found = read_text(head)
    assert said is not None
    assert said.description == "Does it. Use when: asked twice"
    assert said.metadata == {"a": "b"}
    told = [(one.code, one.where) for one in found.all if one.code == "YAML_REPAIRED"]
    assert told == [("YAML_REPAIRED", "SKILL.md:3"), ("YAML_REPAIRED", "SKILL.md:6")]
    assert all("more" not in one.message for one in found.all if one.code == "YAML_REPAIRED")
    _, found = read_text(b"---\ndescription: Use: it\nodd: a: b\n---\n")
    assert [(one.code, one.where) for one in found.errors] == [("BAD_YAML", "SKILL.md:3")]
    _, found = read_text(b"---\nname: x\ndescription: a\x08b\n---\n")
    assert [(one.where, "U+0008" in one.message) for one in found.errors] == [("SKILL.md:3", True)]


def test_many_faults_of_a_kind_are_cut_and_still_count() -> None:
    found = Findings()
    for number in range(300):
        found.warn("UNRESOLVED_TOOL", f"nothing here is tool{number}")
    assert len(found.all) == 51
    assert "more than 50" in found.all[-1].message


@pytest.mark.parametrize("line", ["## Step {0}: a", "[a]({0}.md)", "# Workflow\n## In parallel {0}", "- {0}"])
def test_many_lines_are_read_in_good_time(line: str) -> None:
    body = "\n".join(line.format(n) for n in range(30_000))
    definition, found = read_text(skill(plain("x"), f"\n{body}\n"))
    assert definition is not None
    assert len(found.all) < 60
    assert check_quotes(definition).passed


def test_a_folder_whose_file_is_named_otherwise_is_told_so(tmp_path: Path) -> None:
    _, found = read(lay(tmp_path / "x", {"Skill.MD": skill(plain("x"))}))
    assert [(one.code, one.hint) for one in found.errors] == [("NO_SKILL_MD", "rename Skill.MD to SKILL.md")]


@pytest.mark.parametrize(
    "piece", ["[", "`", "# " + " " * 500 + "x", "*_`", "| ", "<!--", "- ", "1. ", "user says "]
)
def test_long_lines_are_read_in_good_time(piece: str) -> None:
    body = piece * (400_000 // len(piece))
    definition, _ = read_text(skill(plain("x"), f"\n{body}\n# Workflow\n\n1. a\n2. b\n3. c\n"))
    assert definition is not None
    assert titles(definition.reading) == ["a", "b", "c"]


def titles(reading: Reading) -> list[str]:
    return [part.title for part in reading.parts(AgentType.PIPELINE)]


def test_code_is_no_heading_and_a_part_holds_what_stands_under_it(tmp_path: Path) -> None:
    fences, _ = read(laid(tmp_path, "tilde-fences"))
    assert fences.reading.basis == "none"
    release, _ = read(laid(tmp_path, "release-train"))
    assert titles(release.reading) == ["Prepare", "Build", "Publish", "Phase 4"]
    prepare = release.reading.parts(AgentType.PIPELINE)[0]
    assert "### Phase 1.1 of something nested" in prepare.text
    place = SKILLS["release-train"]["SKILL.md"].decode().split("\n").index("## Phase 1: Prepare") + 1
    assert (prepare.quote, release.line(prepare.line)) == ("## Phase 1: Prepare", f"SKILL.md:{place}")
    methodology, _ = read(laid(tmp_path, "methodology"))
    assert titles(methodology.reading) == ["First", "Second", "Third"]
    assert "inner" in methodology.reading.parts(AgentType.PIPELINE)[1].text


def test_numbered_headings_count_under_a_workflow_only_and_keywords_go_before() -> None:
    body = "# Tool\n\n## 1. No\n\n## Workflow\n\n### 1. One\n\n#### 1.1 Inner\n\n### 2) Two\n\n### 3. Three\n"
    body += "\n## Examples\n\n### 1. Not\n"
    assert titles(read_body(body)) == ["One", "Two", "Three"]
    keyed = "".join(f"\n## Step {number}: Keyed\n" for number in range(3))
    assert titles(read_body(body + keyed)) == ["Keyed"] * 3
    assert read_body(body.replace("## Workflow", "## Workflow Best Practices")).basis == "other"


def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    """Line 51."""
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    folder = lay(
        tmp_path / "linked",
        {"SKILL.md": skill(plain("linked"), "\n[a](../secret.md) [b](/etc/passwd) [c](refs/x.md)\n")},
    )
    (folder / "refs").symlink_to(tmp_path)
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    os.mkfifo(folder / "pipe")
    found = Findings()
    files = read_folder(folder, found)
    assert files is not None
    assert set(files.files) == {"SKILL.md"}
    assert sorted(one.where for one in found.errors) == ["out.md", "pipe", "refs"]
    assert {one.code for one in found.errors} == {"UNSAFE_FILE"}


def test_a_folder_has_limits_and_names_that_can_be_shown(tmp_path: Path) -> None:
    many = {f"f{n}.md": b"" for n in range(501)}
    _, found = read(lay(tmp_path / "many", {"SKILL.md": skill(plain("many")), **many}))
    assert codes(found) == {"TOO_BIG"}
    big = lay(tmp_path / "big", {"SKILL.md": skill(plain("big"))})
    with (big / "big.bin").open("wb") as file:
        file.truncate(21 * 1024 * 1024)
    assert codes(read(big)[1]) == {"TOO_BIG"}
    odd = lay(tmp_path / "odd", {"SKILL.md": skill(plain("odd")), "a\x1b[31m.md": b""})
    assert codes(read(odd)[1]) == {"UNSAFE_FILE"}
    lower, found = read(lay(tmp_path / "lower", {"skill.md": skill(plain("lower"))}))
    assert lower is not None
    assert codes(found) == {"SKILL_MD_CASE"}
    assert codes(read(tmp_path / "nowhere")[1]) == {"NO_SKILL_MD"}


@pytest.mark.parametrize(
    ("name", "kind", "rule"),
    [
        ("docx", AgentType.OPERATOR, "reading"),
        ("release-train", AgentType.PIPELINE, "reading"),
        ("brainstorm-ideas", AgentType.GUIDED, "reading"),
        ("review-council", AgentType.COLLABORATIVE, "reading"),
        ("team-canvas", AgentType.GUIDED, "declared"),
        ("methodology", AgentType.PIPELINE, "declared"),
    ],
)
def test_the_type_is_declared_or_what_the_text_states(
    name: str, kind: AgentType, rule: str, tmp_path: Path
) -> None:
    """Line 50."""
    definition, _ = read(laid(tmp_path, name))
    decision = decide_type(definition, {}, {}, Findings())
    assert (decision.type, decision.rule) == (kind, rule)


def test_a_type_that_is_none_is_told() -> None:
    """Line 50."""
    unknown, _ = read_text(skill("name: x\ndescription: y\nmetadata:\n  mindrian-type: gizmo"))
    found = Findings()
    assert decide_type(unknown, {}, {}, found).type is AgentType.OPERATOR
    assert codes(found) == {"UNKNOWN_TYPE"}
    assert decide_type(unknown, {"type": "gizmo"}, {}, found) is None
    assert decide_type(unknown, {"type": "role"}, {"type": "guided"}, found).type is AgentType.GUIDED
