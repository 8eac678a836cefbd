"""`operator.openshift.io`: settings of the machine-config operator, and an older kind about mirrors.

    actions.py                Actions after a change on a node: what has to happen before the change counts as applied
    content_sources.py        ImageContentSourcePolicy of `v1alpha1`: the older form of an ImageDigestMirrorSet
    machine_configuration.py  MachineConfiguration: the operator's settings, a singleton called `cluster`

`actions` holds the part of MachineConfiguration that says what a change does to a node; it is served in the version below.
"""

GROUP = "operator.openshift.io"
VERSION = "v1"
