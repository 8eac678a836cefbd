"""Machines for machine sets, and how they come and go.

    bare_metal.py          Machines of Metal3: each takes a BareMetalHost, follows it until it is a node, and gives it back
    bootstrap_configs.py   FastnessConfigs of Cluster API: each becomes a Secret with the pointer of its pool
    control_plane_sets.py  The ControlPlaneMachineSet: one Machine of the control plane is replaced at a time
    followed_sets.py       What loops of both kinds of sets have in common
    machine_api.py         The loops that make machines for machine sets, as a family
    machine_ends.py        How a Machine goes, whoever made it: hooks, an empty node, and the finalizer last
    machine_sets.py        MachineSets: as many Machines as each asks for, made a few at a time and taken away in its order
    other_machine_api.py   Whether another machine-api operator works in this cluster

Decisions are in `machineconfig/scaling`.
"""
