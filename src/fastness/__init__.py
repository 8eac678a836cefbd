"""Fastness: the control plane for clusters on machines whose owner is not trusted.

A machine is given configuration, keys and a place in the cluster only after it has proved what it booted.
A small shared floor, then one room for each component; inside a room only `live`, `loops` and `door` touch the world. The rules
of imports stand in pyproject.toml.
"""

__version__ = "0.1.0"
