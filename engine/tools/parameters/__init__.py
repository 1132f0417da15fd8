"""An action's parameters before it runs: looked up, corrected, taken from the goal."""
