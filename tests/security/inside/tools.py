# Cases 29 to 31 and 41: programs that run other programs, and programs of one's own.

attempt("find -exec")(tells("find", f"find . -maxdepth 0 -exec cat {SECRET} ';'"))
attempt("xargs")(tells("xargs", f"echo {SECRET} | xargs cat"))
attempt("awk system")(tells("awk", f"awk 'BEGIN {{ system(\"cat {SECRET}\") }}'"))
attempt("sed e")(tells("sed", f"echo x | sed '1e cat {SECRET}'"))
attempt("tar --to-command")(
    tells("tar", f"echo x > m; tar -cf m.tar m; tar -xf m.tar --to-command 'cat {SECRET}'")
)
attempt("rsync -e")(tells("rsync", f"echo 'cat {SECRET} >&2' > r.sh; rsync -e 'sh r.sh' x:y ."))
attempt("git alias")(tells("git", f"git -c alias.x='!cat {SECRET}' x"))
attempt("git's pager")(
    tells("git", f"git init -q g; cd g; echo w > w; git add w; git grep -O'cat {SECRET}' w")
)
attempt("ssh ProxyCommand")(tells("ssh", f"ssh -o ProxyCommand='cat {SECRET} >&2' nowhere"))
attempt("make")(tells("make", f"printf 'x:\\n\\tcat {SECRET}\\n' > Makefile; make x"))
attempt("npm script")(
    tells("npm", f'mkdir -p n; cd n; echo \'{{"scripts":{{"x":"cat {SECRET}"}}}}\' > package.json; npm run x')
)
attempt("vim -c")(tells("vim", f"vim -es -u NONE -c '!cat {SECRET}' -c q"))


def _tar_absolute() -> None:
    if shutil.which("tar") is None:
        raise NotHereError("tar is not installed")
    sh(f"echo x > t; tar -cf t.tar --transform 's,^t,{OUTSIDE}/new,' -P t; tar -xPf t.tar")
    sh(f"test -e {OUTSIDE}/new")


attempt("tar -P")(_tar_absolute)

_CONSTRUCTOR = """
#include <stdio.h>
__attribute__((constructor)) static void told(void) {
    char text[64] = ""; FILE *file = fopen("%s", "r");
    if (file) { fgets(text, sizeof text, file); puts(text); fflush(stdout); fclose(file); }
}
"""


def _preload() -> None:
    if shutil.which("gcc") is None:
        raise NotHereError("gcc is not installed")
    Path("p.c").write_text(_CONSTRUCTOR % SECRET)
    sh("gcc -shared -fPIC p.c -o p.so")
    tells("env", f"env LD_PRELOAD={HERE}/p.so true")()


attempt("LD_PRELOAD of a library of one's own")(_preload)


def _memfd(*words: str) -> str:
    memory = os.memfd_create("program")
    os.write(memory, Path(shutil.which("cat") or "/bin/cat").read_bytes())
    told, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(telling, 1)
        try:
            os.execve(memory, ["cat", *words], {})
        finally:
            os._exit(126)
    os.close(telling)
    with os.fdopen(told) as file:
        said = file.read()
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise StoppedError("the program failed")
    return said


def _own_binary() -> None:
    shutil.copyfile(shutil.which("cat") or "/bin/cat", "own")
    os.chmod("own", 0o700)
    subprocess.run(["./own", "/dev/null"], check=True)


attempt("a program in a memfd runs")(lambda: _memfd("/dev/null"))
attempt("a program in a memfd reads outside")(lambda: WORD in _memfd(SECRET) or raised())
attempt("a program of one's own runs")(_own_binary)
attempt("a program of one's own reads outside")(
    lambda: (_own_binary(), subprocess.run(["./own", SECRET], check=True, capture_output=True))
)
