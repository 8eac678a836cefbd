"""Confidential containers: features of nodes, the runtime, what pods get and how it is sealed for them, operators.

features/          Feature rules: from what was found on a node to its labels, annotations, resources and taints
kata/              KataConfig: which nodes get the runtime, how it gets there, what is made of it, and what is told
enable/            One step from bare metal to runtime classes
compat/            What goes together: releases, architectures, TEEs, GPUs and platforms, as the manual's two tables have it
agent_policy/      The policy of the agent inside a confidential pod: which requests of the host it obeys
initdata/          Init data of confidential pods: what is measured, what is wrong with it, and how it gets into a workload
sealed_secrets.py  Making, checking and opening sealed secrets
host_configs.py    The MachineConfigs that hosts of confidential guests need
intel/             Intel's part of attesting TDX guests, as objects
nvidia/            GPUs for confidential guests: what NVIDIA's operator must be told, and the mode of a GPU
olm/               How operators are chosen, planned and installed: what OLM decides, as functions
admission/         Rules about confidential workloads
live/              Agent policies, tried in the process for policies
loops/             Loops for confidential containers: what nodes can do, and what is installed on them
"""
