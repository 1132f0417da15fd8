# Cases 63 to 74: the network, and other ways of talking.


def connect(*kind: int) -> None:
    made = socket.socket(*kind)
    made.settimeout(5)
    made.connect(("127.0.0.1", PORT))


def fast_open(send: Callable[[socket.socket], object]) -> None:
    send(socket.socket(socket.AF_INET, socket.SOCK_STREAM))


def v6() -> None:
    made = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    made.settimeout(5)
    try:
        made.connect((f"::ffff:{'127.0.0.1'}", PORT))
    except OSError as error:
        if CONTROL and error.errno == errno.EADDRNOTAVAIL:
            raise NotHereError("no IPv6 here") from None
        raise


def opened(family: int, kind: int, protocol: int = 0) -> None:
    """A socket of a family that this kernel may not have."""
    try:
        socket.socket(family, kind, protocol)
    except OSError as error:
        if CONTROL and error.errno in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EPERM, errno.EACCES):
            raise NotHereError("this kernel or user has no such socket") from None
        raise


attempt("tcp")(lambda: connect(socket.AF_INET, socket.SOCK_STREAM))
attempt("udp")(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", PORT)))
attempt("name by DNS")(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 53)))
attempt("tcp by IPv6")(v6)
attempt("udp by IPv6")(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
attempt("mptcp")(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt("tcp fast open by sendto")(
    lambda: fast_open(lambda s: s.sendto(b"x", 0x20000000, ("127.0.0.1", PORT)))
)
attempt("tcp fast open by sendmsg")(
    lambda: fast_open(lambda s: s.sendmsg([b"x"], (), 0x20000000, ("127.0.0.1", PORT)))
)
attempt("listen without a name")(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).listen())
attempt("bind")(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).bind(("127.0.0.1", 0)))
attempt("raw")(lambda: opened(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("icmp")(lambda: opened(socket.AF_INET, socket.SOCK_DGRAM, 1))
attempt("sctp")(lambda: opened(socket.AF_INET, socket.SOCK_STREAM, 132))
attempt("netlink")(lambda: opened(16, socket.SOCK_RAW))
attempt("packet")(lambda: opened(17, socket.SOCK_RAW))
attempt("vsock")(lambda: opened(40, socket.SOCK_STREAM))
attempt("crypto")(lambda: opened(38, 5))
attempt("xdp")(lambda: opened(44, socket.SOCK_RAW))
attempt("bluetooth")(lambda: opened(31, socket.SOCK_RAW, 1))
attempt("io_uring")(lambda: call(425, 1, bytes(120)))


def _machine_code(code: bytes) -> int:
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    result: int = function()
    return result


def _ia32() -> None:
    """getpid by the table of 32-bit programs: mov eax, 20; int 0x80; ret."""
    if not X86:
        raise NotHereError("only x86_64 has it")
    if _machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3") != os.getpid():
        raise StoppedError("no such call")


def _x32() -> None:
    if not X86:
        raise NotHereError("only x86_64 has it")
    try:
        call(0x40000000 + 39)
    except OSError:
        raise (NotHereError("this kernel has no x32") if CONTROL else StoppedError("no such call")) from None


attempt("ia32 call")(_ia32)
attempt("x32 call")(_x32)


def _unix(address: str, kind: int = socket.SOCK_STREAM) -> None:
    socket.socket(socket.AF_UNIX, kind).connect(address)


attempt("abstract socket")(lambda: _unix("\0" + F["abstract"]))
attempt("socket by path")(lambda: _unix(f"{OUTSIDE}/socket"))
attempt("socket by a path through the root")(lambda: (os.symlink(f"{OUTSIDE}/socket", "s"), _unix("s")))
attempt("datagram pair to a path")(
    lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].connect(f"{OUTSIDE}/datagrams")
)
attempt("datagram to a path")(
    lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", f"{OUTSIDE}/datagrams")
)
_SERVICES = (
    *("/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"),
    *(
        f"/run/user/{os.getuid()}/{name}"
        for name in ("bus", "systemd/private", "gnupg/S.gpg-agent", "wayland-0")
    ),
    *(
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
        "/tmp/.X11-unix/X0",
        f"/tmp/tmux-{os.getuid()}/default",
    ),
    *(f"/tmp/ssh-{os.getuid()}/agent", f"/tmp/vscode-ipc-{os.getuid()}.sock"),
)
attempt("sockets of the system, desktop and tmux", control=False)(
    first_of(*(lambda a=s: _unix(a) for s in _SERVICES))
)
attempt("keyring")(lambda: call(on(250, 219), 0, -4, 1))
attempt("add a key")(lambda: call(on(248, 217), b"user", b"jail-test", b"x", 1, -2))
# Made and taken away again: such things outlive their maker.
attempt("shared memory of System V")(lambda: call(on(31, 195), call(on(29, 194), 0, 4096, 0o1600), 0, 0))
attempt("semaphores of System V")(lambda: call(on(66, 191), call(on(64, 190), 0, 1, 0o1600), 0, 0))
attempt("messages of System V")(lambda: call(on(71, 187), call(on(68, 186), 0, 0o1600), 0, 0))
attempt("message queue of POSIX")(
    lambda: (call(on(240, 180), b"jail-test", 0o102, 0o600, 0), call(on(241, 181), b"jail-test"))
)
attempt("bpf")(lambda: call(on(321, 280), 0, bytes(128), 128))
attempt("userfaultfd")(lambda: call(on(323, 282), 1))
attempt("perf")(lambda: call(on(298, 241), struct.pack("=IIQ", 1, 128, 0) + bytes(112), 0, -1, -1, 0))


attempt("inherited descriptors")(lambda: INHERITED or _stop("none is open"))
attempt("secrets in the environment")(
    lambda: any(F["key"] in value for value in os.environ.values()) or _stop("none is there")
)
