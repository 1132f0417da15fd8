"""Skills in the manners in which people publish them, as files by folder."""

from __future__ import annotations

from pathlib import Path

FENCE = "```"


def skill(head: str, body: str = "\n# A skill\n\nDo it well.\n") -> bytes:
    return f"---\n{head.strip()}\n---\n{body}".encode()


DOCX = skill(
    """
name: docx
description: "Comprehensive document creation, editing, and analysis with tracked changes. \
When Claude needs to work with professional documents (.docx files) for: (1) Creating, (2) Editing"
license: Proprietary. LICENSE.txt has complete terms
""",
    f"""
# DOCX creation, editing, and analysis

## Workflow Decision Tree

### Reading/Analyzing Content
Use "Text extraction" below. See [ooxml.md](ooxml.md) and [`docx-js.md`](docx-js.md).

{FENCE}bash
# Convert document to markdown
pandoc --track-changes=all path-to-file.docx -o output.md
## not a heading
{FENCE}

### Editing Existing Document
1. Unpack
   1. nested one
   2. nested two
2. Edit
3. Pack

{FENCE}python
text = \"\"\"triple {{braces}} \\U0001 \\N{{DASH}}\"\"\"
{FENCE}
""",
)

BRAINSTORM = skill(
    """
name: brainstorm-ideas
description: Interactive wizard that guides users from an idea to a design. Use when "brainstorming".
allowed-tools: [Read, Write, AskUserQuestion, WebSearch]
argument-hint: topic
""",
    """
# Brainstorm

## Process

### Step 1: Understand the idea
Ask the user what they want. Ask one question at a time. Wait for the user to answer.

### Step 2: Explore options
Present the options and wait for approval. Confirm with the user which one.

### Step 3: Present the design
Ask them whether each section is right. Get user approval before moving on.
""",
)

RELEASE = skill(
    """
name: release-train
description: End-to-end release workflow in phases for libraries
metadata:
  author: somebody
  mindrian-triggers: release, ship it, tag
  mindrian-problem-types: "well-defined:0.9, ill-defined:0.2"
  mindrian-chains-to: "announce:0.7"
  mindrian-version: "1.10"
""",
    """
# Release train

## Phase 1: Prepare
Write the changes down. Do not proceed until the checkpoint is green.

### Phase 1.1 of something nested

## Phase 2 - Build
The gate: all tests must pass.

## Phase 3: Publish
Deliverable: a tag.

## Phase 4
Before moving on, tell everybody.

## Examples

### Phase 9: Not one
""",
)

COUNCIL = skill(
    """
name: review-council
description: A council of sub-agents reviews a change from several perspectives in parallel.
""",
    """
# Review council

## The perspectives, in parallel

- **Security**: each agent looks for holes
- **Speed**: what is slow
- **Style** - what is hard to read

## Output

A debate, then a synthesis of the perspectives. Each perspective works concurrently;
sub-agents see nothing of others.
""",
)

COACH = skill(
    """
name: socratic-coach
description: A coach persona that never gives answers
""",
    """
You are a socratic coach. You are the voice of doubt. Keep the tone warm. Act as a mirror.
Never give answers. One question per turn. Maximum 3 sentences. Your persona is calm.
""",
)

REFERENCE = skill(
    """
name: sql-reference
description: >
  Reference for SQL dialects.
  Use when: never mind.
""",
    "# SQL\n\n| a | b |\n|---|---|\n"
    + "".join(f"| row {n} | the user says parallel gate checkpoint |\n" for n in range(600))
    + "\n## Output format\n\nA query.\n",
)

PLAIN = "name: {}\ndescription: Does one thing well."


def plain(name: str) -> str:
    return PLAIN.format(name)


SKILLS: dict[str, dict[str, bytes]] = {
    "docx": {
        "SKILL.md": DOCX,
        "ooxml.md": b"# OOXML\n",
        "docx-js.md": b"# docx-js\n",
        "scripts/unpack.py": b"import sys\nprint('never run')\nsys.exit(1)\n",
        "LICENSE.txt": b"All rights reserved.\n",
    },
    "brainstorm-ideas": {"SKILL.md": BRAINSTORM},
    "release-train": {"SKILL.md": RELEASE},
    "review-council": {"SKILL.md": COUNCIL},
    "socratic-coach": {"SKILL.md": COACH},
    "sql-reference": {"SKILL.md": REFERENCE},
    "with-bom": {"SKILL.md": b"\xef\xbb\xbf" + skill(plain("with-bom"))},
    "with-crlf": {"SKILL.md": skill(plain("with-crlf"), "# One\r\n\r\ntext\r\n").replace(b"\n", b"\r\n", 4)},
    "head-only": {"SKILL.md": b"---\nname: head-only\ndescription: Nothing but a head\n---"},
    "dashes-in-body": {"SKILL.md": skill(plain("dashes-in-body"), "\nOne\n\n---\n\nTwo\n---\nthree\n")},
    "dashes-in-value": {"SKILL.md": skill("name: dashes-in-value\ndescription: 'left --- right'")},
    "unquoted-colon": {"SKILL.md": skill("name: unquoted-colon\ndescription: Use when: the user asks: why")},
    "extra-fields": {
        "SKILL.md": skill(
            plain("extra-fields") + "\ntype: component\neffort: high\ndisable-model-invocation: true"
        )
    },
    "hint-in-brackets": {"SKILL.md": skill(plain("hint-in-brackets") + "\nargument-hint: [file] [mode]")},
    "comma-tools": {
        "SKILL.md": skill(plain("comma-tools") + "\nallowed-tools: Bash(git add:*), Bash(jq:*) Read,Task")
    },
    "block-tools": {
        "SKILL.md": skill(plain("block-tools") + "\nallowed-tools:\n  - Read\n  - Bash(npm run test:*)")
    },
    "inline-metadata": {
        "SKILL.md": skill(plain("inline-metadata") + "\nmetadata: {author: me, version: 1.10}")
    },
    "version-ten": {
        "SKILL.md": skill(plain("version-ten") + "\nlicense: MIT\nmetadata:\n  mindrian-version: 1.10")
    },
    "another-folder": {"SKILL.md": skill("name: My Great Skill!\ndescription: Its name is not its folder's")},
    "no-name": {"SKILL.md": skill("description: The folder names it")},
    "long-name": {"SKILL.md": skill("name: " + "abcdefghi-" * 7 + "x\ndescription: 71 letters")},
    "long-description": {"SKILL.md": skill("name: long-description\ndescription: " + "word " * 300)},
    "on": {"SKILL.md": skill("name: on\ndescription: yes")},
    "odd-unicode": {
        "SKILL.md": skill(
            "name: odd-unicode\ndescription: Ünï¢ödé 🦜 مرحبا",
            "\n\u2028 \u0085 \ufeff\u202e \U0001f9dc\u200d♀️ \x0b\x0c\x1b[31m "
            "'''\"\"\" {x} {{y}} \\U \\x \\N{no} %s $id\n",
        )
    },
    "überblick": {"SKILL.md": skill("name: überblick\ndescription: A name with a letter that is not ASCII")},
    "devils-advocate": {
        "SKILL.md": skill('name: Devil\'s "Advocate" \\n\ndescription: Attacks what is proposed')
    },
    "dead-links": {
        "SKILL.md": skill(
            plain("dead-links"),
            "\n[a](missing.md) [b](../outside.md) [c](/etc/passwd) [d](https://example.org/x) [e](#here)\n",
        )
    },
    "tilde-fences": {
        "SKILL.md": skill(
            plain("tilde-fences"),
            "\n# Real\n\n~~~~\n# no\n~~~\n## nor this\n~~~~\n\n- item\n\n"
            "    ```sh\n    # neither\n    ```\n\n## Also real\n",
        )
    },
    "team-canvas": {
        "SKILL.md": skill(
            plain("team-canvas") + "\nmetadata:\n  mindrian-type: guided",
            "\n# Canvas\n\n## Segments\nWho?\n\n## Value\nWhat?\n\n## References\nBooks\n",
        )
    },
    "methodology": {
        "SKILL.md": skill(
            plain("methodology") + "\nmetadata:\n  mindrian-type: pipeline",
            "\n# M\n\n## Methodology\n\n1. First\n2. Second\n   1. inner\n3. Third\n\n"
            "## Common pitfalls\n\n1. Not this\n",
        )
    },
}


def lay(folder: Path, files: dict[str, bytes]) -> Path:
    """Write a skill's files; gives the folder."""
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def laid(top: Path, name: str) -> Path:
    """Write a skill of the corpus."""
    return lay(top / name, SKILLS[name])
