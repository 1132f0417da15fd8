"""Programs that print, parse, run and are saved in the tests; from the descriptions of Jason's tests."""

from __future__ import annotations

FAILURES = """
!start.
+!start <- !g1(X); .print("End, X=", X).
+!g1(X) <- !g2(X); .print(endg1).
+!g2(X) <- !g3(X); .print(endg2).
+!g3(X) <- !g4(X); .print(endg3).
+!g4(X) <- X = 1; .fail; .print(endg4).
-!g3(failure) <- .print(in_failure_plan).
"""
FAIL_FAIL = """
!start.
+!start <- !g1; .print(goodend).
+!g1 <- !g2; .print(endg1).
+!g2 <- !g3; .print(endg2).
+!g3 <- .fail.
-!g2 <- .print(try); .fail.
-!g1 <- .print(solved).
"""
UNNAMED = """
!start.
+!start <- !sub(_); !sub(Z); .print(Z); !own(1); if (not X = 2) { .print(leak) }; .print(X).
+!sub(X) <- Y = 5; X = Y + 1.
+!own(X) <- Y = X; X1 = 2.
"""
LOOPS = """
p(1). p(2). p(3).
n(0).
!start.
+!start <-
    for (p(X)) { ?n(N); -+n(N + X); Y = X };
    ?n(S); .print("sum ", S);
    X = free; Y = also; .print(X, Y);
    while (n(V) & V > 0) { -+n(V - 1) };
    if (n(0)) { R = zero } else { R = more };
    .print(R);
    for (.range(I, 1, 2) & p(J) & I \\== J) { .print(I, "-", J) };
    !total([1, 2, 3, 4], T); .print(T).
+!total([], 0).
+!total([H | R], T) <- !total(R, U); T = H + U.
"""
NATURAL = """
nat(0).
nat(N) :- nat(M) & N = M + 1.
!start.
+!start <- for (nat(X)) { .print(X); if (X == 5) { .fail } }.
-!start[error(E)] <- .print("stopped by ", E).
"""
FAMILY = """
parent(a, b). parent(b, c). parent(b, d). parent(d, e).
ancestor(X, Y) :- parent(X, Y).
ancestor(X, Y) :- parent(X, Z) & ancestor(Z, Y).
append([], L, L).
append([H | T], L, [H | M]) :- append(T, L, M).
childless(X) :- parent(_, X) & not parent(X, _).
!start.
+!start <-
    .findall(Y, ancestor(a, Y), L); .print(L);
    .findall(pair(X, Y), append(X, Y, [1, 2]), M); .print(M);
    .setof(X, childless(X), S); .print(S); .count(parent(b, _), N); .print(N);
    ?(parent(P, e) & not childless(P)); .print(P).
"""
FOCUS = """
!start.
+!start <- +b(1); .print(after); -b(1); .print(last).
+b(X) <- .print(added(X)); .print(still).
-b(X) <- .print(removed(X)).
"""
ROUND_ROBIN = """
!run(a). !run(b). !tick.
+!run(Name) <- !steps(Name, 6).
+!steps(_, 0).
+!steps(Name, N) <- .print(Name, N); !steps(Name, N - 1).
@t[atomic] +!tick <- .print(tick1); .print(tick2); .print(tick3).
"""
WAITING = """
!start. !waker.
+!start <- .wait({+go(X)}); .print(woken(X)); .wait(done(Y)); .print(done(Y)); .wait(never, 20).
-!start[error(E)] <- .print(E); act(E).
+!waker <- .wait(50); +go(7); .wait(10); +done(8).
"""
TESTS = """
known(1).
!start.
+!start <- ?known(X); .print(X); ?derived(4, Y); .print(Y); ?unknown(Z); .print(never).
+?derived(N, M) <- M = N * 2.
-!start[error(E), code(C), code_line(L)] <- .print(E, " ", C, " ", L).
"""
CHANCE = """
!start.
+!start <- for (.range(I, 1, 5)) { .random(X); Y = math.floor(X * 100); .print(Y) };
    .random([a, b, c], Z); .print(Z).
"""
PLANS = """
!start.
+!start <- .add_plan({ @new +!later(X) : X > 1 <- .print(later(X)) }); !later(2);
    .relevant_plans({ +!later(_) }, L, Names); .print(Names);
    .remove_plan(new); !later(3).
-!later(X)[error(E)] <- .print(E, X).
"""
BUSY = """
count(0).
!work(1). !work(2). !work(3).
+!work(N) <- for (.member(X, [10, 20, 30])) { ?count(C); -+count(C + 1); !note(N, X) }; .print(worked(N)).
+!note(N, X) : N * X > 50 <- +noted(N, X).
+!note(_, _).
+noted(N, X)[source(self)] <- act(N, X).
"""

TIMES = """
!start[hard_deadline(40)]. !later.
+!start <- !inner(X)[hard_deadline(15)]; .print(X).
+!inner(X) <- .wait(500); X = 1.
-!inner(done)[error(E)] <- .print(E).
+!later <- .at("now + 20 ms", { +!g(Y, Y) }); .at(30, { +!g(1, 2) }); .drop_desire(g(1, _)).
+!g(A, 7) <- .print(A).
"""
STATES = """
!g(2). !h.
+!g(0). +!g(N) <- act(N); !g(N - 1).
+!h <- .wait(3); .fail.
^!g(N)[state(S)] <- .print(N, S); act(S).
@why[priority(3), breakpoint] ^!h[state(failed)[reason(R)]] <- .print(R).
"""
BODIES = """
n(1). todo({ .print(kept); act(3) }).
!start.
+!start <- B = { for (.member(X, [1, 2])) { Y = X + Z; .print(Y) }; !g({ .print(Z) }) }; Z = 5; B;
    ?todo(T); T; S = act(Z); S; G = g({ .print(end) }); !G; .eval(V, n(1) & n(2)); .print(V).
+!g(B) <- .wait(2); B.
+!g(_)[note|T] <- .print(T).
"""
DRAWS = """
!start[a(1), b|[c]].
+!start[c, a(N)|T] <- .print(N, T); for (.range(I, 1, 3)) { X = math.random(9); !note(X + math.random) }.
+!note(X) : math.random < 2 <- Y = math.floor(X); .print(Y); +seen(Y)[math|[rest]].
+seen(Y)[math|T] <- .print(T).
"""

CORPUS = {
    name.lower(): text for name, text in list(globals().items()) if name.isupper() and isinstance(text, str)
}
