"""Checks of a build against the skill itself: its parts' quotes, and the files, programs and sentences in it.

Nothing of the skill is run: a program is looked for, and a script is not started.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import PurePosixPath

from engine.core.text import clean_line
from engine.crew.builder.findings import CheckResult, Findings
from engine.crew.builder.reading import words
from engine.crew.builder.skill import SkillDefinition
from engine.crew.builder.skill_folder import SkillFolder
from engine.crew.ontology.spec import VARIABLE, AgentSpec
from engine.crew.selection import choose, signal_in

_LONGEST_LINE, _MOST_SENTENCES = 5_000, 40
_FOLDERS = "scripts|references?|assets|resources|templates|examples|workflows"
_NAMED = re.compile(rf"\]\(([^()\s]+)\)|(?<![\w/.:~-])((?:\./)?(?:{_FOLDERS})/[\w./-]*\w\.\w+)")
_COMMAND = re.compile(
    r"(?:^|[`\s])(python3?|uv|node|npx|bash|sh|bun|deno|ruby|perl|go|make)\s[^`]{0,200}?(scripts/[\w./-]*\w)"
)
_USE, _NOT = words("use"), words("use_not")
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))+")
_UNRELATED = (
    "Thank you, that is all that I wanted to know today.",
    "What time is it in Lisbon, and will it rain there tomorrow?",
    "Please say hello to my sister and tell her that I will be late.",
)


def check_quotes(skill: SkillDefinition) -> CheckResult:
    """Whether each part stands where the reading says, in the words that it quotes."""
    lines = skill.body.decode().replace("\r\n", "\n").split("\n")
    parts = [part for structure in skill.reading.structures for part in structure.parts]
    good = all(lines[part.line - 1].strip() == part.quote != "" for part in parts)
    return CheckResult("parts_quoted", good, f"{len(parts)} parts of the text")


def check_files(skill: SkillDefinition, folder: SkillFolder, findings: Findings) -> CheckResult:
    """Which of the files that the text names are there, and which programs that start its scripts."""
    named: dict[str, str] = {}
    for at, line in enumerate(skill.body.decode().split("\n"), 1):
        if len(line) > _LONGEST_LINE:
            continue
        line = VARIABLE.sub(".", line)
        for match in _NAMED.finditer(line):
            path = (match[1] or match[2]).partition("#")[0]
            if path and not re.match(r"[a-z]+:|[/$<{~]|.*[*<{]", path):
                named.setdefault(PurePosixPath(path).as_posix(), skill.line(at))
        if (command := _COMMAND.search(line)) and shutil.which(command[1]) is None:
            findings.warn(
                "NO_PROGRAM", f"{command[2]} is started by {command[1]}: none is here", skill.line(at)
            )
    there = {*folder.files, *(str(above) for path in folder.files for above in PurePosixPath(path).parents)}
    missing = [path for path in named if path not in there]
    for path in missing:
        findings.warn("MISSING_FILE", f"{path} is named and is not in the folder", named[path])
    return CheckResult(
        "files_exist", True, f"{len(named) - len(missing)} of {len(named)} that the text names"
    )


def check_sentences(skill: SkillDefinition, spec: AgentSpec, findings: Findings) -> CheckResult:
    """Whether the sentences that say when to use the skill select its agent, and others do not."""
    when = [
        line for line in _SENTENCE.findall(skill.description) if _USE.search(line) and not _NOT.search(line)
    ]
    if not spec.selectable:
        return CheckResult("sentences", True, "never selected")
    tried = {True: when[:_MOST_SENTENCES], False: [*_UNRELATED, *_refused(skill)][:_MOST_SENTENCES]}
    right = dict.fromkeys(tried, 0)
    for wanted, sentences in tried.items():
        for sentence in sentences:
            signal = signal_in(sentence, (spec,))
            if bool(signal.triggers and choose((spec,), {}, signal).rows) == wanted:
                right[wanted] += 1
                continue
            if wanted and skill.declared("triggers"):
                continue
            code, said = ("NOT_SELECTED", "does not select it") if wanted else ("SELECTED", "selects it")
            shown = clean_line(sentence, limit=120)
            why = "" if wanted else f", by {', '.join(signal.triggers[:5])}"
            findings.warn(code, f"{shown!r} {said}{why}", "triggers", "say metadata.mindrian-triggers")
    counts = [f"{right[wanted]} of {len(sentences)}" for wanted, sentences in tried.items()]
    return CheckResult("sentences", True, f"{counts[0]} select it, {counts[1]} others do not")


def _refused(skill: SkillDefinition) -> Iterator[str]:
    """Sentences that say when the skill is not to be used."""
    yield from (line for line in _SENTENCE.findall(skill.description) if _NOT.search(line))
    inside = False
    for line in skill.body.decode().split("\n"):
        if line.startswith("#"):
            inside = len(line) < _LONGEST_LINE and _NOT.search(line) is not None
        elif inside and line.lstrip().startswith(("- ", "* ")):
            yield line.strip("-* \r")[:_LONGEST_LINE]
