"""`operator.openshift.io/v1`: settings of the operator that looks after machine configuration.

    actions.py                Actions after a change on a node: what has to happen before the change counts as applied
    machine_configuration.py  MachineConfiguration: the operator's settings, a singleton called `cluster`

One kind, MachineConfiguration; `actions` holds the part of it that says what a change does to a node.
"""

GROUP = "operator.openshift.io"
VERSION = "v1"
