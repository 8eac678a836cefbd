"""What every machine starts from: the files and units that make a machine a node.

node_inputs.py    What the base of a pool is made from: typed, and complete or not made at all
cluster_facts.py  What can be read of a cluster, and what of it the ControllerConfig is told
rows.py           A table of what a machine gets: one row for each file, unit and drop-in, with when it applies and why
table.py          The whole table: which config of a role holds which rows, and which row wrote something
host.py           What every machine gets whatever runs on it: kernel settings, names and addresses, trust, the proxy
runtime.py        The container runtime's own files: CRI-O with the libraries that it shares with podman, or containerd
kubelet.py        The kubelet: its configuration, its unit, and what runs before it
kubelet_rows.py   The rows of `01-<role>-kubelet`
agent_units.py    The agent's own units: the same texts that `fastness machine image` puts into images
scripts           What runs on the machine before its kubelet, in POSIX sh
"""
