"""What a node does with a config: differences, steps, journal, and what it reports."""
