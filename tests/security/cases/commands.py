"""Cases 21 to 46: what a command may do to files."""

from __future__ import annotations

from tests.security.case import Case

_JAIL = "tests/engine/sandbox/test_jail.py::"
_LIMITS = "tests/engine/sandbox/test_jail_limits.py::"
_WAYS = ("", " by ..", " by link", " by directory")

CASES = (
    Case(
        21,
        "Reading by path",
        "cat ../secret, by an absolute path, by a link, from a directory outside, a listing",
        "refused: there is no such file",
        "refused: permission denied",
        inside=(
            *("read", "read by ..", "read by link", "cat", "list outside"),
            *("walk in from a directory outside",),
        ),
    ),
    Case(
        22,
        "The operator's keys",
        "open ~/.ssh, ~/.aws, ~/.config, a keyring",
        inside=(
            "operator's .ssh/id_ed25519",
            "operator's .aws/credentials",
            "operator's .config/gh/hosts.yml",
            "operator's .local/share/keyrings/login.keyring",
        ),
    ),
    Case(
        23,
        "Planting start-up files",
        "append ~/.bashrc, make ~/.config/autostart, ~/.local/bin/git, a crontab, any file outside",
        "refused",
        inside=(
            *("plant .bashrc", "plant .config/autostart/x.desktop", "plant .local/bin/git"),
            *("plant a crontab", "create outside", "mkdir beside the root", "write by link"),
        ),
    ),
    Case(
        24,
        "Other users' files",
        "/etc/shadow, private keys, another program's file in /tmp",
        inside=("shadow", "private keys", "another program's file in /tmp"),
    ),
    Case(
        25,
        "Links and renames over the border",
        "hard link in, rename in, rename out, remove outside by path and by link",
        inside=(
            *("hard link in", "rename in", "rename out", "remove outside"),
            *("remove by linked directory",),
        ),
    ),
    Case(26, "The root itself", "rename it, remove it", inside=("rename the root", "remove the root")),
    Case(
        27,
        "The cockpit by /proc",
        "/proc/self/root, /proc/1/root, the cockpit's root, environ, fd, mem, maps, cwd; the supervisor's",
        inside=(
            *("root by /proc/self", "root by /proc/1", "cockpit's root", "cockpit's environ"),
            *("cockpit's descriptors", "cockpit's mem", "cockpit's maps", "cockpit's directory"),
            *("supervisor's environ and memory",),
        ),
    ),
    Case(28, "The cockpit's command line", "/proc/COCKPIT/cmdline", inside=("cockpit's cmdline",)),
    Case(
        29,
        "Programs that run programs",
        "find -exec, xargs, awk, sed e, tar, rsync -e, git, ssh, make, npm, vim: each asked for the secret",
        "they run, and inside the jail",
        inside=(
            *("find -exec", "xargs", "awk system", "sed e", "tar --to-command", "tar -P", "rsync -e"),
            *("git alias", "git's pager", "ssh ProxyCommand", "make", "npm script", "vim -c"),
        ),
    ),
    Case(
        30,
        "A compiled LD_PRELOAD",
        "a constructor of a library of one's own reads the secret",
        inside=("LD_PRELOAD of a library of one's own",),
    ),
    Case(
        31,
        "pip and hostile packages",
        "a build backend and a setup.py that read keys, plant files and look for secrets",
        "they learn and change nothing",
        tests=(
            "tests/engine/sandbox/test_jail_installs.py::test_packages_are_installed_and_hostile_ones_learn_nothing",
        ),
    ),
    Case(
        32,
        "truncate by path",
        "truncate(2) on a file outside",
        inside=("truncate by path",),
        tests=("tests/engine/sandbox/test_jail_degrades.py::test_older_rulesets_still_hold_files",),
    ),
    Case(
        33,
        "Metadata of files outside",
        "chmod, chown, utime, setxattr by path, by .., by link, by a directory; of devices and of /proc",
        inside=(
            *(f"{name} outside{way}" for name in ("chmod", "chown", "utime", "setxattr") for way in _WAYS),
            *("chmod outside by descriptor", "lchown a link outside", "chmod a device"),
            *("utime of a device", "access list of a device", "chmod a file of /proc"),
        ),
        tests=(
            f"{_JAIL}test_a_link_swapped_meanwhile_changes_nothing_outside",
            f"{_JAIL}test_wild_pointers_and_times_are_refused_and_end_nothing",
        ),
    ),
    Case(
        34,
        "A file open for reading",
        "fchmod, a lease and the inode's version of the interpreter or its library",
        inside=(
            *("chmod the interpreter", "fchmod the interpreter", "lease on a file of the library"),
            *("version of the interpreter's inode",),
        ),
    ),
    Case(
        35,
        "Set-id bits",
        "chmod, fchmod, creation and mknod with set-id bits on a file of one's own",
        "the bit is dropped or the call refused",
        inside=("set-id on creation", "set-id by mknod"),
        works=("set-id bits are dropped and modes set", "times and groups are set"),
    ),
    Case(
        36,
        "Reading metadata outside",
        "stat, access, readlink, listxattr, statfs, chdir; listxattrat, file_getattr",
        "refused",
        "the first six are allowed, and named by doctor",
        inside=("listxattrat", "file_getattr"),
        seen=("stat", "access", "readlink", "listxattr", "statfs", "chdir"),
        tests=("tests/engine/sandbox/test_security.py::test_doctor_names_what_was_measured_to_get_through",),
    ),
    Case(
        37,
        "Watching outside",
        "inotify and fanotify on a directory outside",
        inside=("inotify outside", "fanotify outside"),
    ),
    Case(
        38, "File handles", "name_to_handle_at, open_by_handle_at", inside=("file handles", "open by handle")
    ),
    Case(
        39,
        "Writing the interpreter",
        "base Python, its site-packages and scripts, the cockpit's packages",
        inside=(
            *(
                "write the library",
                "plant in the interpreter's purelib",
                "plant in the interpreter's scripts",
            ),
            *("plant in the interpreter's stdlib", "plant in the cockpit's packages"),
        ),
    ),
    Case(
        40,
        "Executing outside",
        "a program outside the allowed directories, directly and by the loader",
        inside=("execute outside", "execute outside by the loader"),
    ),
    Case(
        41,
        "Programs of one's own",
        "execute a memfd and a binary of one's own; have them read the secret",
        "they run, and inside the jail",
        inside=("a program in a memfd reads outside", "a program of one's own reads outside"),
        works=("a program in a memfd runs", "a program of one's own runs"),
    ),
    Case(
        42,
        "Mounts and devices",
        "mount, bind mount, chroot, pivot_root, mknod, open_tree, fsopen",
        inside=("mount", "bind mount", "chroot", "pivot_root", "mknod", "open_tree", "fsopen"),
    ),
    Case(
        43,
        "Namespaces within",
        "a user namespace by unshare and by clone, a nested bwrap",
        inside=("user namespace", "user namespace by clone", "nested bwrap"),
    ),
    Case(
        44,
        "Devices of the host",
        "/dev/mem, kmsg, sda, vda, fuse, kvm",
        inside=tuple(f"/dev/{name}" for name in ("mem", "kmsg", "sda", "vda", "fuse", "kvm")),
    ),
    Case(
        45,
        "Shared memory of others",
        "open another program's segment in /dev/shm",
        "not visible",
        "refused",
        inside=("another program's shared memory",),
    ),
    Case(
        46,
        "Filling the disk",
        "one file, many, inodes, holes, space set aside, files removed while open, a closed directory",
        "ended at the budget, the cockpit lives",
        tests=(
            f"{_JAIL}test_what_no_rlimit_counts_is_watched",
            f"{_LIMITS}test_a_full_sandbox_ends_the_command",
        ),
    ),
)
