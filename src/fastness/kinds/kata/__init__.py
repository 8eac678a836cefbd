"""`kataconfiguration.openshift.io/v1`: the runtime for confidential containers.

    config.py   KataConfig: asks for the runtime for confidential containers on some or all workers
    names.py    Every name that the installation of the runtime agrees on: labels, objects, files, states
    runtime.py  What makes a node able to run pods in virtual machines, on it and beside it

One kind, KataConfig. What follows from it (runtime classes, machine configs, node labels) are objects of other groups.
"""

GROUP = "kataconfiguration.openshift.io"
VERSION = "v1"
