// The explorer robot: its goal and what it knows of its world, but no plan.
// The benchmark of the plan generation procedure; spec BDI 3.1, after listings 5.1 to 5.3 of the thesis.

//@ admissible goal reach(Object): "{Object} is where the agent is, that is, there_is({Object}, here)"

//@ admissible belief obstacle(Direction): "there is an {functor} to the {Direction}"
//@ admissible belief there_is(Object, Direction): "{Object} is in the cell to the {Direction}"
//@ admissible belief direction(Direction): "{Direction} is a direction"
//@ admissible belief object(Object): "{Object} is an object"
//@ meaning belief free(Direction): "there is no obstacle to the {Direction}"

//@ meaning action .print(Text, Value): "prints {Text} and {Value}"
//@ meaning action .fail: "makes the current intention fail"
//@ meaning action stop: "stops the agent"
//@ meaning action pause: "pauses the agent"
//@ meaning action sleep(Time): "lets the agent sleep for {Time} milliseconds"
//@ meaning action move(Direction): "moves one cell in the given {Direction}"
//@ meaning action getDirectionToMove(Direction): "sets {Direction} to one that is free of obstacles, so that the agent can move there"

//@ remark "To move, first get a direction with getDirectionToMove, then move in it."
//@ remark "there_is(Object, Direction) is believed only when the object is in a neighbouring cell or right here. Home is out of sight at first: plans must also work without that belief."

!reach(home).
