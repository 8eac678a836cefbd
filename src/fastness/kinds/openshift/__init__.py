"""Kinds of OpenShift and its companions that users of the manuals touch.

    config.py     `config.openshift.io/v1`: facts and settings of the whole cluster
    machines.py   Where machines come from: MachineSet, ControlPlaneMachineSet, BareMetalHost
    operators.py  `operators.coreos.com`: how operators are chosen, installed and described
    project.py    Project and Route: how OpenShift shows namespaces and publishes services
    security.py   SecurityContextConstraints: what pods of an account may ask of the host
    stored.py     How a kind that is only stored is declared
    workloads.py  Kinds of neighbours that run or watch workloads

They are stored as they come: `spec` and `status` keep whatever they hold. What is exact is what a client sees first: groups,
versions, names, short names, scope, printer columns, subresources. A cluster that has the real operators has these definitions
already; the label `fastness.dev/set=platform` tells an installer which ones those are.
"""

LABELS = {"fastness.dev/set": "platform"}
