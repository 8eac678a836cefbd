"""Kinds of OpenShift and its companions that users of the manuals touch.

    addresses.py        Addresses and networks of a platform, in the shapes that its providers share
    config.py           `config.openshift.io/v1`: facts and settings of the whole cluster
    embedded.py         DNS and Infrastructure of `config.openshift.io` as other objects carry them, whole
    image_policies.py   ClusterImagePolicy and ImagePolicy of `config.openshift.io/v1`: whose signatures images need
    images.py           Where images come from: Image, ImageDigestMirrorSet, ImageTagMirrorSet of `config.openshift.io/v1`
    machines.py         Where machines come from: MachineSet, Machine, ControlPlaneMachineSet, BareMetalHost
    node_settings.py    APIServer, FeatureGate and Node of `config.openshift.io`: what the whole cluster asks of its kubelets
    operators.py        `operators.coreos.com`: how operators are chosen, installed and described
    platform_spec.py    What an Infrastructure wants of its platform: one member for each provider, and the rules about them
    platform_status.py  What was observed of an Infrastructure's platform: one member for each provider, and the rules about them
    security.py         SecurityContextConstraints: what pods of an account may ask of the host
    stored.py           How a kind that is only stored is declared
    workloads.py        Kinds of OpenShift and of neighbours that hold, run, publish or watch workloads

Most are stored as they come: `spec` and `status` keep whatever they hold. What is exact is what a client sees first: groups,
versions, names, short names, scope, printer columns, subresources. Those about images have schemas, because machines follow
from them. A cluster that has the real operators has these definitions
already; the label `fastness.dev/set=platform` tells an installer which ones those are.
"""

LABELS = {"fastness.dev/set": "platform"}
