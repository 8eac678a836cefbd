"""GPUs for confidential guests: what NVIDIA's operator must be told, what it must have said of nodes, and the mode of a GPU.

policy.py    ClusterPolicy: the sample, and a checker that names each wrong field with what to set
labels.py    the labels that a node needs for each GPU class, with reasons
ccmode.py    the confidential mode of a node's GPUs as a state machine, failures included
"""
