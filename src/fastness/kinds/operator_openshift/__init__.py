"""`operator.openshift.io/v1`: settings of the operator that looks after machine configuration.

One kind, MachineConfiguration; `actions` holds the part of it that says what a change does to a node.
"""

GROUP = "operator.openshift.io"
VERSION = "v1"
