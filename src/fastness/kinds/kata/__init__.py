"""`kataconfiguration.openshift.io/v1`: the runtime for confidential containers.

    config.py   KataConfig: asks for the runtime for confidential containers on some or all workers
    names.py    Every name that the installation of the runtime agrees on: labels, objects, files, states
    remote.py   The two files that make a node able to run a pod as a virtual machine beside it
    runtime.py  What makes a node able to run pods in virtual machines

One kind, KataConfig. What follows from it (runtime classes, machine configs, node labels) are objects of other groups.
"""

GROUP = "kataconfiguration.openshift.io"
VERSION = "v1"
