"""The hardware that vouches for a machine, and the directory with its identity."""
