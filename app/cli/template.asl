// A program to begin with. What is already true, a rule, a goal, and the plans that pursue it.

stock(apples, 3).
stock(pears, 0).

short(Fruit) :- stock(Fruit, Count) & Count < 2.

!provide.

+!provide <-
    for (short(Fruit)) {
        !order(Fruit)
    };
    .print("all is there").

// Plans for one goal are tried in this order; the first whose context holds is taken.
+!order(Fruit) : stock(Fruit, 0) <-
    .print("order many ", Fruit);
    -+ordered(Fruit, 10).
+!order(Fruit) <-
    -+ordered(Fruit, 2).

// Taken when the goal fails.
-!order(Fruit)[error_msg(Why)] <-
    .print("no ", Fruit, ": ", Why).

+ordered(Fruit, Count) <-
    .print(Count, " ", Fruit, " come").
