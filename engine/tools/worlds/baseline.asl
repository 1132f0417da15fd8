// The plans a person wrote for the explorer robot; listing 5.4 of the thesis.

@here   +!reach(Object) : there_is(Object, here)[source(percept)].

@near   +!reach(Object) : there_is(Object, Direction)[source(percept)]
        <- move(Direction).

@search +!reach(Object) : not there_is(Object, _)[source(percept)]
        <- getDirectionToMove(Direction);
           move(Direction);
           !reach(Object).
