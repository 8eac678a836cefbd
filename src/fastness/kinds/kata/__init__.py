"""`kataconfiguration.openshift.io/v1`: the runtime for confidential containers.

One kind, KataConfig. What follows from it (runtime classes, machine configs, node labels) are objects of other groups.
"""

GROUP = "kataconfiguration.openshift.io"
VERSION = "v1"
