"""What other programs speak to Pilothouse: the server side of the Model Context Protocol."""
