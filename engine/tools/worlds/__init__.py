"""Small worlds in which agents are measured: the explorer robot."""
