# What must go on working: cases 35, 41, 69.


def _modes() -> None:
    Path("work").write_text("x")
    for mode in (0o4750, 0o2750, 0o6750):
        os.chmod("work", mode)
        if os.stat("work").st_mode & 0o7777 != 0o750:
            _stop(f"{mode:o} became {os.stat('work').st_mode:o}")
    with open("work", "a") as file:
        os.fchmod(file.fileno(), 0o4640)
        os.utime(file.fileno())
    if os.stat("work").st_mode & 0o7777 != 0o640:
        _stop("fchmod kept the bit")


def _times() -> None:
    Path("timed").write_text("x")
    os.utime("timed", (5, 6))
    os.chown("timed", -1, os.getgid())
    if os.stat("timed").st_mtime != 6.0:
        _stop("the time was not set")


def _talk(one: Any, other: Any) -> None:
    one.sendall(b"ok")
    if other.recv(2) != b"ok":
        _stop("nothing came")


def _pipe() -> None:
    read, write = os.pipe()
    os.write(write, b"ok")
    if os.read(read, 2) != b"ok":
        _stop("nothing came")


attempt("set-id bits are dropped and modes set", control=False)(_modes)
attempt("times and groups are set")(_times)
attempt("socketpair")(lambda: _talk(*socket.socketpair()))
attempt("pipe")(_pipe)
attempt("kill everything reaches the jail alone", control=False)(lambda: os.kill(-1, 0))

print(json.dumps(FOUND))
