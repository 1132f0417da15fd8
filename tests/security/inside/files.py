# Cases 21 to 46: files outside, by path, by link, by descriptor, by tools.

attempt("read")(reads(SECRET))
attempt("read by ..")(reads(f"{'../' * 12}{SECRET}"))
attempt("read by link")(lambda: (os.symlink(SECRET, "l1"), Path("l1").read_text()))
attempt("cat")(tells("cat", f"cat {SECRET}; cat ../outside/secret"))
attempt("write by link")(lambda: (os.symlink(SECRET, "l2"), Path("l2").write_text("x")))
attempt("create outside")(lambda: Path(f"{OUTSIDE}/new").write_text("x"))
attempt("remove outside")(lambda: os.unlink(SECRET))
attempt("remove by linked directory")(lambda: (os.symlink(OUTSIDE, "l3"), os.unlink("l3/secret")))
attempt("list outside")(lambda: os.listdir(OUTSIDE))
attempt("walk in from a directory outside")(lambda: (os.chdir(OUTSIDE), open("secret").close()))
attempt("private file of the same user")(reads(f"{STATE}/private"))
for _secret in (
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".local/share/keyrings/login.keyring",
):
    attempt(f"operator's {_secret}")(reads(f"{HOME}/{_secret}"))
for _place in (".bashrc", ".config/autostart/x.desktop", ".local/bin/git"):
    attempt(f"plant {_place}")(appends(f"{HOME}/{_place}"))
attempt("plant a crontab", control=False)(
    first_of(appends("/var/spool/cron/crontabs/x"), appends("/etc/cron.d/x"))
)
attempt("shadow")(reads("/etc/shadow"))
attempt("private keys")(lambda: os.listdir("/etc/ssl/private"))
attempt("another program's file in /tmp")(reads(F["tmp"]))
attempt("hard link in")(lambda: (os.link(SECRET, "stolen"), os.unlink("stolen")))
attempt("rename in")(lambda: os.rename(SECRET, "stolen"))
attempt("rename out")(lambda: (Path("mine").write_text("x"), os.rename("mine", f"{OUTSIDE}/mine")))
attempt("rename the root")(lambda: (os.rename(HERE, f"{HERE}-moved"), os.rename(f"{HERE}-moved", HERE)))
attempt("remove the root", control=False)(lambda: os.rmdir(HERE))
attempt("mkdir beside the root")(lambda: (os.mkdir(f"{HERE}-beside"), os.rmdir(f"{HERE}-beside")))
attempt("root by /proc/self")(reads(f"/proc/self/root{SECRET}"))
attempt("root by /proc/1", control=False)(reads(f"/proc/1/root{SECRET}"))
for _what in ("environ", "maps", "mem", "cmdline"):
    attempt(f"cockpit's {_what}")(lambda w=_what: os.read(os.open(f"/proc/{COCKPIT}/{w}", os.O_RDONLY), 0))
attempt("cockpit's root")(reads(f"/proc/{COCKPIT}/root{SECRET}"))
attempt("cockpit's descriptors")(lambda: os.listdir(f"/proc/{COCKPIT}/fd"))
attempt("cockpit's directory")(lambda: os.listdir(f"/proc/{COCKPIT}/cwd/"))
attempt("supervisor's environ and memory", control=False)(
    first_of(reads(f"/proc/{SUPERVISOR}/environ"), lambda: os.open(f"/proc/{SUPERVISOR}/mem", os.O_RDONLY))
)
attempt("truncate by path")(lambda: os.truncate(SECRET, 0))

# Metadata: by path, by .., by symbolic link, by a directory's descriptor

_CHANGES: dict[str, Callable[[str], object]] = {
    "chmod": lambda path: os.chmod(path, 0o777),
    "chown": lambda path: os.chown(path, os.getuid(), os.getgid()),
    "utime": lambda path: os.utime(path, (1, 1)),
    "setxattr": lambda path: os.setxattr(path, "user.x", b"1"),
}
for _name, _change in _CHANGES.items():
    attempt(f"{_name} outside")(lambda c=_change: c(SECRET))
    attempt(f"{_name} outside by ..")(lambda c=_change: c(f"{'../' * 12}{SECRET}"))
    attempt(f"{_name} outside by link")(
        lambda c=_change, n=_name: (os.symlink(SECRET, f"c-{n}"), c(f"c-{n}"))
    )
    attempt(f"{_name} outside by directory")(lambda c=_change: (os.chdir(OUTSIDE), c("secret")))
attempt("chmod outside by descriptor")(
    lambda: os.chmod("secret", 0o777, dir_fd=os.open(OUTSIDE, os.O_PATH | os.O_DIRECTORY))
)
attempt("lchown a link outside")(lambda: os.lchown(f"{OUTSIDE}/link", os.getuid(), os.getgid()))
attempt("chmod a device", control=False)(lambda: os.chmod("/dev/full", 0o666))
attempt("utime of a device", control=False)(lambda: os.utime("/dev/full", (5, 5)))
attempt("access list of a device", control=False)(
    lambda: os.setxattr(
        "/dev/full",
        "system.posix_acl_access",
        struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, 6, 0xFFFFFFFF) for tag in (1, 4, 32)),
    )
)
attempt("chmod a file of /proc", control=False)(lambda: os.chmod("/proc/uptime", 0o444))
attempt("chmod the interpreter", control=False)(lambda: os.chmod(sys.executable, 0o777))
attempt("fchmod the interpreter", control=False)(
    lambda: os.fchmod(os.open(sys.executable, os.O_RDONLY), 0o777)
)
attempt("lease on a file of the library", control=False)(
    lambda: fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), 1024, fcntl.F_RDLCK)
)


def _set_version() -> None:
    number, word = os.open(sys.executable, os.O_RDONLY), bytearray(8)
    fcntl.ioctl(number, 0x80087601, word, True)
    fcntl.ioctl(number, 0x40087602, bytes(word))


attempt("version of the interpreter's inode", control=False)(_set_version)
attempt("set-id on creation")(lambda: os.open("suid", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt("set-id by mknod")(lambda: os.mknod("suid2", 0o104755))
attempt("inotify outside")(
    lambda: libc.inotify_add_watch(libc.inotify_init(), OUTSIDE.encode(), 2) >= 0 or raised()
)


def _fanotify() -> None:
    group = call(on(300, 262), 0x200, 0)  # FAN_REPORT_FID, which needs no privilege
    call(on(301, 263), group, 1, 2, -100, OUTSIDE.encode())


attempt("fanotify outside")(_fanotify)
attempt("file handles")(
    lambda: call(on(303, 264), -100, SECRET.encode(), struct.pack("=II", 128, 0) + bytes(128), bytes(8), 0)
)
attempt("open by handle")(lambda: call(on(304, 265), -100, struct.pack("=II", 8, 1) + bytes(8), 0))
attempt("write the library", control=False)(lambda: open(os.__file__, "a").close())
for _name in ("purelib", "scripts", "stdlib"):
    attempt(f"plant in the interpreter's {_name}", control=False)(
        appends(f"{sysconfig.get_path(_name)}/planted.py")
    )
# Not `appends`, which makes directories: in its own /tmp a command can make any path, and that is nothing.
attempt("plant in the cockpit's packages", control=False)(
    lambda: open(f"{F['packages']}/planted.pth", "a").close()
)
attempt("execute outside")(lambda: subprocess.run([f"{OUTSIDE}/tool"], check=True))


def _by_loader() -> None:
    loaders = [
        path for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(path)
    ]
    if not loaders:
        raise NotHereError("the loader is elsewhere")
    subprocess.run([loaders[0], f"{OUTSIDE}/program", "/dev/null"], check=True, capture_output=True)


attempt("execute outside by the loader")(_by_loader)
attempt("look above the interpreter")(lambda: os.listdir(os.path.dirname(sys.base_prefix)))
attempt("mknod")(lambda: os.mknod("disk", 0o060600, os.makedev(8, 0)))
attempt("chroot")(lambda: os.chroot("."))
attempt("mount")(lambda: call(on(165, 40), b"none", b".", b"tmpfs", 0, b""))
attempt("bind mount")(lambda: call(on(165, 40), OUTSIDE.encode(), HERE.encode(), b"", 4096, b""))
attempt("pivot_root")(lambda: call(on(155, 41), b".", b"."))
attempt("open_tree")(lambda: call(428, -100, OUTSIDE.encode(), 1))
attempt("fsopen")(lambda: call(430, b"tmpfs", 0))
for _device in ("mem", "kmsg", "sda", "vda", "fuse", "kvm"):
    attempt(f"/dev/{_device}")(lambda d=_device: os.open(f"/dev/{d}", os.O_RDWR))
attempt("another program's shared memory")(reads(F["shm"]))

for _path in ("journal.db", "pilothouse.toml", "recipes/x.toml"):
    attempt(f"change {_path}")(appends(f"{STATE}/{_path}"))

# What KERNEL cannot hide

attempt("stat")(lambda: os.stat(SECRET))
attempt("access")(lambda: os.access(SECRET, os.R_OK) or raised())
attempt("readlink")(lambda: os.readlink(f"{OUTSIDE}/link"))
attempt("listxattr")(lambda: os.listxattr(SECRET))
_path = SECRET.encode()
attempt("listxattrat")(lambda: call(465, -100, _path, 0, None, 0))
attempt("file_getattr")(lambda: call(468, -100, _path, ctypes.create_string_buffer(24), 24, 0))
attempt("statfs")(lambda: os.statvfs(OUTSIDE))
attempt("chdir")(lambda: os.chdir(OUTSIDE))
attempt("a process's group")(lambda: os.getpgid(COCKPIT))
