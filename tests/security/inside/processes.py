# Cases 47 to 50 and 60: other processes, and privileges.


def _queued(number: int, *who: int) -> None:
    """rt_sigqueueinfo and rt_tgsigqueueinfo with SIGCONT, as sigqueue sends it."""
    call(number, *who, signal.SIGCONT, struct.pack("=iiiiII", signal.SIGCONT, 0, -1, 0, 0, 0) + bytes(104))


for _whose, _pid in (("cockpit", COCKPIT), ("other jail", OTHER)):
    attempt(f"signal 0 to the {_whose}")(lambda p=_pid: os.kill(p, 0))
    attempt(f"SIGCONT to the {_whose}")(lambda p=_pid: os.kill(p, signal.SIGCONT))
    attempt(f"tgkill to the {_whose}")(lambda p=_pid: call(on(234, 131), p, p, signal.SIGCONT))
    attempt(f"sigqueue to the {_whose}")(lambda p=_pid: _queued(on(129, 138), p))
    attempt(f"tgsigqueue to the {_whose}")(lambda p=_pid: _queued(on(297, 240), p, p))
    attempt(f"pidfd signal to the {_whose}")(lambda p=_pid: signal.pidfd_send_signal(os.pidfd_open(p), 0))
attempt("signal the supervisor")(lambda: os.kill(SUPERVISOR, 0))
attempt("stop the supervisor", control=False)(lambda: os.kill(SUPERVISOR, signal.SIGSTOP))
attempt("signal process 1", control=False)(lambda: os.kill(1, signal.SIGCONT))


def _owned(pid: int) -> None:
    """Have the kernel signal a process by making it the owner of a socket; the driver counts what arrives."""
    one, other = socket.socketpair()
    fcntl.fcntl(one, fcntl.F_SETOWN, pid)
    fcntl.fcntl(one, 10, signal.SIGURG)  # F_SETSIG
    fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    other.send(b"x")


FOUND_OUTSIDE = "told by the driver"
outcome_of(lambda: _owned(COCKPIT))
FOUND["signal by the owner of a socket"] = FOUND_OUTSIDE

attempt("ptrace", control=False)(lambda: call(on(101, 117), 16, COCKPIT, 0, 0))
attempt("ptrace seize")(lambda: call(on(101, 117), 0x4206, COCKPIT, 0, 0))


def _moved(number: int) -> None:
    """process_vm_readv and its like, with one byte at an address of the caller's own."""
    buffer = ctypes.create_string_buffer(8)
    vector = struct.pack("=QQ", ctypes.addressof(buffer), 1)
    far = struct.pack("=QQ", int(F["address"]), 1)
    call(number, COCKPIT, vector, 1, far, 1, 0)


attempt("process_vm_readv")(lambda: _moved(on(310, 270)))
attempt("process_vm_writev", control=False)(lambda: _moved(on(311, 271)))
attempt("pidfd_open")(lambda: os.pidfd_open(COCKPIT))
attempt("pidfd_getfd")(lambda: call(438, os.pidfd_open(COCKPIT), 0, 0))
attempt("kcmp")(lambda: call(on(312, 272), COCKPIT, COCKPIT, 0, 0, 0))
attempt("prlimit")(lambda: resource.prlimit(COCKPIT, resource.RLIMIT_NOFILE))
attempt("setpriority")(
    lambda: os.setpriority(os.PRIO_PROCESS, COCKPIT, os.getpriority(os.PRIO_PROCESS, COCKPIT))
)
attempt("setpriority of the user", control=False)(lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
attempt("oom score of the cockpit")(lambda: Path(f"/proc/{COCKPIT}/oom_score_adj").write_text("1000"))
attempt("affinity")(lambda: os.sched_setaffinity(COCKPIT, os.sched_getaffinity(0)))
attempt("scheduler")(lambda: os.sched_setscheduler(COCKPIT, os.SCHED_OTHER, os.sched_param(0)))
attempt("scheduler's attributes")(
    lambda: call(on(314, 274), COCKPIT, struct.pack("=IIQiIQQQ", 48, 0, 0, 0, 0, 0, 0, 0), 0)
)
attempt("priority of input and output")(lambda: call(on(251, 30), 1, COCKPIT, 0x4004))
attempt("user namespace")(lambda: call(on(272, 97), 0x10000000))
attempt("user namespace by clone")(lambda: call(on(56, 220), 0x10000011, 0, 0, 0, 0) or os._exit(0))
attempt("nested bwrap")(
    lambda: sh("bwrap --unshare-user --ro-bind / / true") if shutil.which("bwrap") else _missing("bwrap")
)


def _missing(program: str) -> None:
    raise NotHereError(f"{program} is not installed")


# Privileges

for _program in ("su", "sudo", "pkexec", "newuidmap", "fusermount", "mount"):
    attempt(f"{_program} gains nothing")(
        lambda p=_program: sh(f"{p} -c true x </dev/null") if shutil.which(p) else _missing(p)
    )
attempt("privileges can be gained")(lambda: libc.prctl(39, 0, 0, 0, 0) == 0 or raised())


def _capabilities() -> None:
    held = ctypes.create_string_buffer(24)
    call(on(125, 90), struct.pack("=II", 0x20080522, 0), held)
    bounding = any(libc.prctl(23, number, 0, 0, 0) == 1 for number in range(41)) and os.getuid() == 0
    if not any(held.raw) and not bounding:
        raise StoppedError("none is held")


attempt("a capability is held")(_capabilities)
attempt("become another user")(lambda: os.setresuid(12345, 12345, 12345))
