"""Machines on demand: what a machine set has to make or to take away, and how far a machine is.

sets.py             A MachineSet: which Machines are its own, how many are missing, which go first, what it reports
machines.py         A Machine: whose business it is, what it boots with, what its deletion waits for, what it reports
control_plane.py    A ControlPlaneMachineSet: which of its Machines are of the wanted shape, and the one step that comes next
failure_domains.py  Where Machines of a control plane are: what a domain writes into them, and how indices are spread
bootstrap.py        What a Machine of Cluster API boots with: a Secret with the pointer of its pool
providers.py        Who makes the machines of a set, by the kind of its providerSpec
metal3.py           Hosts of Metal3: which one a Machine takes, what is written on it, how far it is, and how it is given back

Who makes the machines is a provider: `sim/provider` makes virtual ones, `loops/machines/bare_metal` takes hosts. A set whose
template names another provider is left to the controllers of that provider, and says so.
"""
