"""Cases 1 to 20: the file commands, which run in the cockpit and need no process."""

from __future__ import annotations

from tests.security.case import Case

_FILES = "tests/engine/sandbox/test_files_stay_beneath_the_root.py::"
_CODER = "tests/engine/tools/test_simple_coder.py::"
_VERBS = ("ls", "cd", "find", "write", "append", "replace", "mkdir", "move", "copy", "rm")
_VENVS = ("activate_venv", "create_venv")

CASES = (
    Case(
        1,
        "Paths that leave the root",
        "every verb with ../x, a/../../x, /etc/passwd, //etc, ~ and ~root",
        "refused, nothing outside is opened",
        native=("paths that leave the root", "a tilde is a plain name"),
        tests=(
            f"{_FILES}test_a_path_that_leaves_the_root_is_outside_root",
            f"{_FILES}test_a_sibling_whose_name_begins_like_the_root_is_outside",
        ),
    ),
    Case(
        2,
        "Reading through links",
        "read through a link to a file outside, to a directory, a chain of 40, an absolute link back inside",
        native=(
            "a link to a file outside",
            "a link to a directory outside",
            "a chain of 40 links",
            "an absolute link back into the root",
        ),
        tests=(f"{_FILES}test_a_loop_of_links_is_a_typed_error",),
    ),
    Case(
        3,
        "Writing through a dangling link",
        "write, append and mkdir through a link whose target outside does not exist yet",
        "refused, the target is not made",
        native=("a write through a dangling link",),
        tests=(f"{_FILES}test_a_write_through_a_dangling_link_creates_nothing",),
    ),
    Case(
        4,
        "rm through links",
        "rm through a linked parent; rm of a link",
        "refused; of a link, the link alone goes",
        native=("rm through a linked parent", "rm of a link leaves its target"),
        tests=(f"{_FILES}test_removing_a_link_leaves_its_target",),
    ),
    Case(
        5,
        "rm of the root",
        "rm of ., /, the root's own path, .., the empty string, a directory",
        native=("rm of the root",),
        tests=(f"{_FILES}test_the_root_itself_cannot_be_removed_or_written",),
    ),
    Case(
        6,
        "rm without being armed",
        "rm by an agent that the operator did not arm; after the arming expired",
        "refused, logged",
        native=("an agent arms rm itself",),
        tests=(f"{_CODER}test_rm_needs_autonomous_mode",),
        absent=("after the arming expired: arming has no time limit yet, it ends when the operator ends it",),
    ),
    Case(
        7,
        "An agent arms itself",
        "toggle_autonomous_mode called by an agent",
        "refused, logged as an attempt",
        native=("an agent arms rm itself",),
        tests=(f"{_CODER}test_nobody_but_the_operator_switches_autonomous_mode",),
    ),
    Case(
        8,
        "Swapped links against read",
        "a jailed program exchanges files and directories with links that lead outside, while read runs",
        "no leak, nothing outside is opened",
        race=("read",),
        tests=(f"{_FILES}test_a_concurrent_symlink_swapper_gains_nothing",),
    ),
    Case(
        9,
        "Swapped links, every other verb",
        "the same against ls, cd, find, write, append, replace, mkdir, move, copy, rm and both venv verbs",
        "no effect outside",
        race=(*_VERBS, *_VENVS),
    ),
    Case(
        10,
        "The working directory goes away",
        "it is renamed, removed, or replaced by a link outside, while the session stands in it",
        "the next call fails or stays in the same directory",
        native=("a working directory replaced by a link",),
        tests=(
            f"{_CODER}test_a_directory_that_is_gone_is_an_error_and_not_a_crash",
            f"{_CODER}test_a_directory_replaced_by_a_link_does_not_lead_programs_outside",
        ),
    ),
    Case(
        11,
        "Special files",
        "read, copy, append and find over a pipe, a socket, a device and a directory",
        "a typed error at once",
        native=("a pipe, a socket, a device, a directory",),
        tests=(f"{_FILES}test_special_files_are_refused_at_once",),
    ),
    Case(
        12,
        "Endless files",
        "read a sparse file of 1 TB, one that grows meanwhile, /dev/zero by a link; replace a by a million x",
        "capped or refused, memory stays flat",
        native=("a huge, a growing and an endless file", "a replacement that grows without end"),
        tests=(f"{_FILES}test_a_file_over_the_limit_is_refused_with_its_size",),
    ),
    Case(
        13,
        "Malformed paths",
        "NUL, empty, a name of 256 bytes, a path of 5,000, 3,000 components, a lone surrogate",
        "a typed error",
        native=("malformed paths",),
        tests=(f"{_FILES}test_malformed_paths_are_bad_arguments",),
    ),
    Case(
        14,
        "Hostile names",
        "names with escapes, line breaks, right-to-left marks, a leading dash, bytes that are no UTF-8",
        "listed, read and removed as they are",
        native=("hostile names are listed, read and removed",),
    ),
    Case(
        15,
        "A second hard link",
        "write, append, replace, read, find, copy and move on a file that has another name outside",
        "refused, the inode outside stays as it is",
        native=("a file with a second name outside",),
        tests=(
            f"{_FILES}test_a_file_with_a_second_hard_link_is_not_written",
            f"{_FILES}test_a_file_with_a_name_outside_is_not_read_searched_copied_or_moved",
        ),
    ),
    Case(
        16,
        "A root prepared beforehand",
        "a root that is a link, or holds files with other names outside",
        "refused or reported",
        tests=(
            "tests/engine/sandbox/test_shared_files.py::test_files_with_several_names_are_named",
            "tests/engine/sandbox/test_shared_files.py::test_a_root_that_is_a_link_is_refused_and_reported",
            "tests/engine/sandbox/test_shared_files.py::test_doctor_reports_what_a_program_could_change_outside",
        ),
    ),
    Case(
        17,
        "Very many names, very deep trees",
        "ls of a directory of 200,000 names, removal of a tree of 3,000 levels",
        "bounded time and memory, no recursion",
        native=("a directory of very many names", "a tree of 3,000 levels"),
        tests=(
            f"{_FILES}test_a_tree_is_removed_however_deep",
            f"{_FILES}test_find_goes_down_a_deep_tree_without_recursion",
        ),
    ),
    Case(
        18,
        "A tree deeper than a path",
        "fill the disk below a path longer than 4,096 bytes",
        "counted, the command is ended",
        tests=("tests/engine/sandbox/test_jail_limits.py::test_a_full_sandbox_ends_the_command",),
    ),
    Case(
        19,
        "The wrong kind of file",
        "mkdir over a file, write over a directory, cd to a file",
        "a typed error",
        native=("files and directories for each other",),
        tests=(f"{_FILES}test_directories_and_files_are_not_taken_for_each_other",),
    ),
    Case(
        20,
        "Protected names in another case",
        ".Pilothouse and .PILOTHOUSE for .pilothouse",
        "the verdict of the exact name",
        native=("protected names in other cases",),
        tests=(f"{_FILES}test_protected_names_are_nobody_elses",),
        absent=("a file system that ignores case: none can be mounted here; names are compared casefolded",),
    ),
)
