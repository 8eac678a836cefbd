"""Fastness: the control plane for clusters on machines whose owner is not trusted.

A machine is given configuration, keys and a place in the cluster only after it has proved what it booted.
The packages read as the data flows, and import only downwards:
`cli, sim → services, controllers, agent → trust, drivers → cluster → domain → crypto, formats → model`.
"""

__version__ = "0.1.0"
