# Cases 75 and 76: terminals, of one's own and of the host.


def _own_terminal() -> int:
    """A terminal of one's own; the cockpit's by descriptor where there can be none."""
    try:
        return os.openpty()[1]
    except OSError:
        return 0


def push(request: int) -> None:
    """Put a character into the input of a terminal that is this session's own, as far as one can be had."""
    terminal = _own_terminal()
    os.setsid()
    if terminal:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    call(on(16, 29), terminal, request, b"x")


attempt("TIOCSTI")(lambda: push(termios.TIOCSTI))
attempt("TIOCSTI with high bits")(lambda: push(0x7FFF00005412))
attempt("TIOCLINUX")(lambda: push(0x541C))
attempt("TIOCSETD")(lambda: call(on(16, 29), _own_terminal(), 0x5423, struct.pack("=i", 0)))
attempt("TIOCCONS", control=False)(lambda: call(on(16, 29), _own_terminal(), 0x541D))
attempt("/dev/tty")(lambda: os.open("/dev/tty", os.O_RDWR))
attempt("the cockpit's terminal")(
    lambda: os.write(os.open(F["terminal"], os.O_WRONLY | os.O_NOCTTY), b"planted")
)
attempt("TIOCSTI on the cockpit's terminal")(
    lambda: call(on(16, 29), os.open(F["terminal"], os.O_RDWR | os.O_NOCTTY), termios.TIOCSTI, b"x")
)
attempt("any terminal or console for writing", control=False)(
    first_of(
        *(
            lambda p=path: os.open(p, os.O_WRONLY | os.O_NOCTTY)
            for path in (
                "/dev/console",
                "/dev/tty0",
                "/dev/tty1",
                "/dev/ttyS0",
                *(f"/dev/pts/{n}" for n in range(64)),
            )
        )
    )
)
