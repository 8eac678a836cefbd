"""GPUs for confidential guests: what NVIDIA's operator must be told, what it must have said of nodes, and the mode of a GPU.

ccmode.py  The confidential mode of a node's GPUs, as a state machine
labels.py  The labels that a node needs before GPU classes count it, each with its reason and what brings it about
policy.py  ClusterPolicy for confidential guests: what must be in it, why, and what is wrong with a given one
"""
