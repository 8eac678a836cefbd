"""Machines on demand: what a machine set has to make or to take away, and how far a machine is.

sets.py      A MachineSet: which Machines are its own, how many are missing, which go first, what it reports
machines.py  A Machine: whose business it is, what it boots with, what its deletion waits for, what it reports

Who makes the machines is a provider: `sim/provider` makes virtual ones. A set whose template names another provider is left to
the controllers of that provider, and says so.
"""
