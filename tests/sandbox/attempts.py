"""Attempts to get out of a jail, run inside of it; prints a JSON object of outcomes by name.

An outcome is `through`, or the name of the error that stopped the attempt. `OUTSIDE` is a directory of the
same user, with a file `secret`, a link `link`, a program `tool` and a listening socket `socket`; `COCKPIT` is
a process of the same user; `ABSTRACT` a listening socket's abstract name and `PORT` a listening TCP port.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

OUTSIDE, COCKPIT, ABSTRACT, PORT = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
SECRET = f"{OUTSIDE}/secret"
FOUND: dict[str, str] = {}
libc = ctypes.CDLL(None, use_errno=True)
SUPERVISOR = os.getppid()
X86 = platform.machine() == "x86_64"


def call(number: int, *args: Any) -> int:
    converted = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result: int = libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def raised() -> None:
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def attempt(name: str) -> Callable[[Callable[[], object]], None]:
    def run(work: Callable[[], object]) -> None:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            outcome = "through"
            try:
                work()
            except OSError as error:
                outcome = errno.errorcode.get(error.errno or 0, str(error))
            except subprocess.CalledProcessError as error:
                outcome = f"exit {error.returncode}"
            finally:
                os.write(write, outcome.encode())
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as file:
            outcome = file.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        FOUND[name] = outcome if outcome and status == 0 else f"signal {-status}"

    return run


def sh(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True)


# Files

attempt("read")(lambda: Path(SECRET).read_text())
attempt("read by ..")(lambda: Path(f"{'../' * 12}{SECRET}").read_text())
attempt("read by link")(lambda: (os.symlink(SECRET, "l1"), Path("l1").read_text()))
attempt("write by link")(lambda: (os.symlink(SECRET, "l2"), Path("l2").write_text("x")))
attempt("create outside")(lambda: Path(f"{OUTSIDE}/new").write_text("x"))
attempt("remove outside")(lambda: os.unlink(SECRET))
attempt("remove by linked directory")(lambda: (os.symlink(OUTSIDE, "l3"), os.unlink("l3/secret")))
attempt("hard link in")(lambda: os.link(SECRET, "stolen"))
attempt("rename in")(lambda: os.rename(SECRET, "stolen"))
attempt("rename out")(lambda: (Path("mine").write_text("x"), os.rename("mine", f"{OUTSIDE}/mine")))
attempt("truncate by path")(lambda: os.truncate(SECRET, 0))
attempt("list outside")(lambda: os.listdir(OUTSIDE))
attempt("rename the root")(lambda: os.rename(os.getcwd(), f"{os.getcwd()}-moved"))
attempt("mkdir beside the root")(lambda: os.mkdir(f"{os.getcwd()}-beside"))
attempt("execute outside")(lambda: subprocess.run([f"{OUTSIDE}/tool"], check=True))
attempt("shadow")(lambda: Path("/etc/shadow").read_text())
attempt("private keys")(lambda: os.listdir("/etc/ssl/private"))
attempt("root by /proc/self")(lambda: Path(f"/proc/self/root{SECRET}").read_text())
for _what in ("environ", "maps", "mem", "cmdline"):
    attempt(f"cockpit's {_what}")(lambda w=_what: Path(f"/proc/{COCKPIT}/{w}").read_bytes())
attempt("cockpit's root")(lambda: Path(f"/proc/{COCKPIT}/root{SECRET}").read_text())
attempt("cockpit's descriptors")(lambda: os.listdir(f"/proc/{COCKPIT}/fd"))
attempt("oom score of the cockpit")(lambda: Path(f"/proc/{COCKPIT}/oom_score_adj").write_text("1000"))
attempt("chmod outside")(lambda: os.chmod(SECRET, 0o777))
attempt("chmod outside by ..")(lambda: os.chmod(f"{'../' * 12}{SECRET}", 0o777))
attempt("chmod outside by link")(lambda: (os.symlink(SECRET, "l4"), os.chmod("l4", 0o777)))
attempt("chmod outside by directory")(
    lambda: os.chmod("secret", 0o777, dir_fd=os.open(OUTSIDE, os.O_PATH | os.O_DIRECTORY))
)
attempt("chown outside")(lambda: os.chown(SECRET, os.getuid(), os.getgid()))
attempt("utime outside")(lambda: os.utime(SECRET, (1, 1)))
attempt("setxattr outside")(lambda: os.setxattr(SECRET, "user.x", b"1"))
attempt("chmod the interpreter")(lambda: os.chmod(sys.executable, 0o777))
attempt("fchmod the interpreter")(lambda: os.fchmod(os.open(sys.executable, os.O_RDONLY), 0o777))
attempt("write the library")(lambda: Path(os.__file__).open("a").close())
attempt("mknod")(lambda: os.mknod("disk", 0o060600, os.makedev(8, 0)))
attempt("file handles")(
    lambda: call(303 if X86 else 264, -100, SECRET.encode(), b"\x80" + bytes(200), bytes(8), 0)
)
attempt("chroot")(lambda: os.chroot("."))
attempt("memory device")(lambda: os.open("/dev/mem", os.O_RDONLY))
attempt("set-id on creation")(lambda: os.open("suid", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt("inotify outside")(
    lambda: libc.inotify_add_watch(libc.inotify_init(), OUTSIDE.encode(), 2) >= 0 or raised()
)

# What KERNEL cannot hide

attempt("stat")(lambda: os.stat(SECRET))
attempt("readlink")(lambda: os.readlink(f"{OUTSIDE}/link"))
attempt("listxattr")(lambda: os.listxattr(SECRET))
attempt("statfs")(lambda: os.statvfs(OUTSIDE))
attempt("chdir")(lambda: os.chdir(OUTSIDE))

# Processes

attempt("signal 0")(lambda: os.kill(COCKPIT, 0))
attempt("SIGCONT")(lambda: os.kill(COCKPIT, signal.SIGCONT))
attempt("signal the supervisor")(lambda: os.kill(SUPERVISOR, 0))
attempt("pidfd signal")(lambda: signal.pidfd_send_signal(os.pidfd_open(COCKPIT), 0))
attempt("ptrace")(lambda: call(101 if X86 else 117, 16, COCKPIT, 0, 0))
attempt("prlimit")(lambda: resource.prlimit(COCKPIT, resource.RLIMIT_NOFILE))
attempt("setpriority")(lambda: os.setpriority(os.PRIO_PROCESS, COCKPIT, 10))
attempt("affinity")(lambda: os.sched_setaffinity(COCKPIT, {0}))
attempt("scheduler")(lambda: os.sched_setscheduler(COCKPIT, os.SCHED_OTHER, os.sched_param(0)))
attempt("setuid program")(lambda: sh("su -c true </dev/null"))
attempt("user namespace")(lambda: call(272 if X86 else 97, 0x10000000))
attempt("nested bwrap")(lambda: sh("bwrap --unshare-user --ro-bind / / true"))
attempt("mount")(lambda: call(165 if X86 else 40, b"none", b".", b"tmpfs", 0, b""))

# Network and other ways of talking


def connect(*kind: int) -> None:
    made = socket.socket(*kind)
    made.settimeout(5)
    made.connect(("127.0.0.1", PORT))


attempt("tcp")(lambda: connect(socket.AF_INET, socket.SOCK_STREAM))
attempt("udp")(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", PORT)))
attempt("mptcp")(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt("tcp fast open")(
    lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).sendto(b"x", 0x20000000, ("127.0.0.1", PORT))
)
attempt("listen")(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).listen())
attempt("raw")(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("icmp")(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1))
attempt("sctp")(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
attempt("netlink")(lambda: socket.socket(16, socket.SOCK_RAW, 0))
attempt("packet")(lambda: socket.socket(17, socket.SOCK_RAW, 0))
attempt("vsock")(lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("crypto")(lambda: socket.socket(38, 5, 0))
attempt("abstract socket")(lambda: socket.socket(socket.AF_UNIX).connect("\0" + ABSTRACT))
attempt("socket by path")(lambda: socket.socket(socket.AF_UNIX).connect(f"{OUTSIDE}/socket"))
attempt("datagram pair to a path")(
    lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].connect(f"{OUTSIDE}/datagrams")
)
attempt("io_uring")(lambda: call(425, 1, bytes(120)))
attempt("keyring")(lambda: call(250 if X86 else 219, 0, -4, 1))
attempt("shared memory of System V")(lambda: call(29 if X86 else 194, 0, 4096, 0o1600))
attempt("bpf")(lambda: call(321 if X86 else 280, 0, bytes(128), 128))
attempt("userfaultfd")(lambda: call(323 if X86 else 282, 1))
attempt("perf")(lambda: call(298 if X86 else 241, bytes(128), 0, -1, -1, 0))
if X86:
    attempt("x32 call")(lambda: call(0x40000000 + 39))


# Terminal


def push() -> None:
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSTI, b"x")
    os.close(master)


def push_with_high_bits() -> None:
    call(16 if X86 else 29, os.openpty()[1], 0x7FFF00005412, b"x")


attempt("TIOCSTI")(push)
attempt("TIOCSTI with high bits")(push_with_high_bits)
attempt("terminal")(lambda: os.open("/dev/tty", os.O_RDWR))

# What must work


def main() -> None:
    FOUND["descriptors"] = str([fd for fd in range(3, 200) if opened(fd)])
    Path("work").write_text("x")
    os.chmod("work", 0o4750)
    FOUND["mode of a set-id chmod"] = oct(os.stat("work").st_mode & 0o7777)
    os.utime("work", (5, 6))
    FOUND["times"] = str(os.stat("work").st_mtime)
    os.chown("work", -1, os.getgid())
    with open("work", "a") as file:
        os.fchmod(file.fileno(), 0o640)
        os.utime(file.fileno())
    FOUND["mode of fchmod"] = oct(os.stat("work").st_mode & 0o7777)
    a, b = socket.socketpair()
    a.sendall(b"ok")
    FOUND["socketpair"] = b.recv(2).decode()
    print(json.dumps(FOUND))


def opened(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


main()
