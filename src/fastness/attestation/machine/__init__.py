"""A machine's place and proof over time."""
