"""Programs drawn from a seed that try to hang their interpreter or to fill the memory."""

from __future__ import annotations

import random

_ATOMS = ("a", "b", "c", "go", "end")
_VARIABLES = ("X", "Y", "Z", "L", "N")


def hostile_program(seed: int) -> str:
    """A program; the same seed gives the same one."""
    rng = random.Random(f"hostile {seed}")
    goals = [f"g{number}" for number in range(rng.randint(1, 4))]
    lines = [f"!{goals[0]}({_term(rng, 1)})."]
    lines += [f"{_literal(rng, 2)}." for _ in range(rng.randint(0, 3))]
    lines += [_rule(rng) for _ in range(rng.randint(0, 3))]
    for goal in goals:
        for _ in range(rng.randint(1, 3)):
            lines.append(_plan(rng, goal, goals))
    lines.append(rng.choice(_SCENES)(rng))
    return "\n".join(lines)


def _term(rng: random.Random, depth: int) -> str:
    choice = rng.randrange(8 if depth else 4)
    if choice < 2:
        return rng.choice(_VARIABLES)
    if choice == 2:
        return rng.choice((*_ATOMS, str(rng.randint(-3, 2000)), "1e300", '"text"', "[]"))
    if choice == 3:
        return "_"
    if choice == 4:
        tail = rng.choice((*_VARIABLES, f"[{_term(rng, depth - 1)}]"))
        return f"[{_term(rng, depth - 1)}|{tail}]"
    if choice == 5:
        return f"f({_term(rng, depth - 1)},{_term(rng, depth - 1)})[{_literal(rng, depth - 1)}]"
    return f"f({_term(rng, depth - 1)},{_term(rng, depth - 1)})"


def _literal(rng: random.Random, depth: int) -> str:
    return f"{rng.choice(('p', 'q', 'r'))}({_term(rng, depth)},{_term(rng, depth)})"


def _rule(rng: random.Random) -> str:
    body = " & ".join(_condition(rng) for _ in range(rng.randint(1, 3)))
    return f"{_literal(rng, 2)} :- {body}."


def _condition(rng: random.Random) -> str:
    a, b = _term(rng, 2), _term(rng, 2)
    return rng.choice(
        (
            f"{a} = {b}",
            f"{a} == {b}",
            f"{_literal(rng, 1)}",
            f"not {_literal(rng, 1)}",
            f".range({rng.choice(_VARIABLES)},0,{rng.choice((3, 50, 100000000))})",
            f".findall({a},{_literal(rng, 1)},{rng.choice(_VARIABLES)})",
            f".member({a},{b})",
            f".sublist({a},{b})",
            f"({_literal(rng, 1)} | {_literal(rng, 1)})",
        )
    )


def _plan(rng: random.Random, goal: str, goals: list[str]) -> str:
    context = (
        f" : {' & '.join(_condition(rng) for _ in range(rng.randint(1, 2)))}" if rng.random() < 0.4 else ""
    )
    steps = "; ".join(_step(rng, goals) for _ in range(rng.randint(1, 6)))
    return f"{rng.choice('++++-')}!{goal}({_term(rng, 2)}){context} <- {steps}."


def _step(rng: random.Random, goals: list[str]) -> str:
    a, b = _term(rng, 2), _term(rng, 2)
    text = rng.choice(_VARIABLES)
    return rng.choice(
        (
            f"{a} = {b}",
            f".print({a},{b})",
            f"+{_literal(rng, 2)}",
            f"-{_literal(rng, 1)}",
            f"-+{_literal(rng, 2)}",
            f"?{_literal(rng, 1)}",
            f"!{rng.choice(goals)}({a})",
            f"!!{rng.choice(goals)}({a})",
            f".concat({a},{b},{text})",
            f".concat({text},{text},{rng.choice(_VARIABLES)})",
            f".term2string({a},{text})",
            f".sort({a},{text})",
            f".union({a},{b},{text})",
            f".intersection({a},{b},{text})",
            f"{a} =.. {b}",
            f".copy_term({a},{text})",
            f"for ({_condition(rng)}) {{ +{_literal(rng, 1)} }}",
            f"while ({_condition(rng)}) {{ {text} = {a} }}",
        )
    )


def _circle(rng: random.Random) -> str:
    return rng.choice(
        (
            "!s. +!s <- X = f(Y); Y = f(X); .print(X).",
            "!s. +!s <- X = [1|Y]; Y = [2|X]; .print(X).",
            "!s. +!s <- !t(Z,Z). +!t(X,f(X)) <- .print(X); +b(X).",
            "same(X,X). !s. +!s <- ?same(X,f(X)); .print(X).",
            "!s. +!s <- X =.. [f,[Y,X],[]]; .print(X).",
            "!s. +!s <- X = p[T]; T = a(X); .print(X); +X.",
        )
    )


def _shared(rng: random.Random) -> str:
    """A term that doubles with every step."""
    deep = rng.randint(15, 60)
    first = rng.choice(("a", "Free", "[]", '"text"'))
    shape = rng.choice(("f(X{0},X{0})", "[1,X{0}|X{0}]", "f(X{0})[n(X{0}),m(X{0})]", "[X{0},X{0}]"))
    steps = "; ".join(f"X{n + 1} = {shape.format(n)}" for n in range(deep))
    again = steps.replace("X", "Y")
    last = rng.choice(
        (
            ".print(X{0})",
            "+b(X{0}); ?b(Z); .print(Z)",
            "!t(X{0})",
            "Y0 = {1}; {2}; X{0} == Y{0}",
            "Y0 = {1}; {2}; X{0} = Y{0}",
            "Y0 = {1}; {2}; X{0} < Y{0}",
            ".sort([X{0},X{0}],L); .print(L)",
            ".findall(X{0}, .range(N,1,50), L); +c(L)",
            ".send(self,tell,X{0})",
            ".ground(X{0}); +b(X{0}); -b(X{0}); +b(X{0})",
        )
    ).format(deep, first, again)
    return f"!s. +!s <- X0 = {first}; {steps}; {last}. +!t(X) <- .print(X)."


def _exploding(rng: random.Random) -> str:
    return rng.choice(
        (
            '!s("x"). +!s(T) <- .concat(T,T,U); +kept(U); !s(U).',
            '!s("xy"). +!s(T) <- .replace(T,"x","xyxx",U); !s(U).',
            "!s([1]). +!s(L) <- .concat(L,L,M); +kept(M); !s(M).",
            '!s("x",0). +!s(T,N) <- .concat(T,N,U); .concat(U,T,V); +kept(V); !s(V,N+1).',
        )
    )


def _deep(rng: random.Random) -> str:
    return rng.choice(
        (
            "!s(0,a). +!s(N,T) <- !s(N+1,f(T)).",
            "!s(0,a). +!s(N,T) <- !s(N+1,p[T]); .print(N).",
            "nat(0). nat(s(N)) :- nat(N). !s. +!s <- ?nat(X); ?(nat(Y) & Y = z).",
            "loop(X) :- loop(X). !s. +!s <- ?loop(1).",
            "e(X) :- not e(X). !s. +!s <- ?e(1).",
            "a(X) :- b(X) & a(X). b(1). b(2). b(X) :- a(X). !s. +!s <- ?a(3).",
            "+!s <- !s; !s. !s. -!s <- !s.",
        )
    )


def _flood(rng: random.Random) -> str:
    return rng.choice(
        (
            "!s(0). +!s(N) <- +n(N); +m(N,N)[a(N)]; !s(N+1).",
            "!s(0). +!s(N) <- !!t(N); !s(N+1). +!t(N) <- .wait(100000).",
            "!s. +!s <- for (.range(I,1,1000000)) { +n(I) }.",
            "+n(X) <- +n(X+1); +n(X+2). n(0).",
            "!s. +!s <- .findall(p(A,B,C), .range(A,1,500) & .range(B,1,500) & .range(C,1,500), L); +all(L).",
            "!s. +!s <- .findall(X,.range(X,1,1900),L); .sublist(M,L); .length(M,1901).",
        )
    )


_SCENES = (_circle, _shared, _exploding, _deep, _flood)
