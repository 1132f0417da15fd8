"""What other programs speak to Pilothouse: the socket of a running engine, and the Model Context Protocol."""
