"""What exists: the nouns, one package per API group, one module per kind or small family.

    cluster_api/             `bootstrap.cluster.x-k8s.io/v1alpha1`: what Cluster API asks of a bootstrap provider
    confidentialcontainers/  `confidentialcontainers.org/v1alpha1`: settings of the key broker, under the names its users know
    crd/                     CustomResourceDefinitions: from kinds to manifests and back
    errors.py                What can be wrong with kinds and definitions
    fastness_dev/            `fastness.dev/v1alpha1`: our own kinds, where public ones end
    kata/                    `kataconfiguration.openshift.io/v1`: the runtime for confidential containers
    kind.py                  A kind, as data
    kubernetes/              Native Kubernetes kinds: what a real API server serves itself, so that no CRD is generated for them
    loft/                    `management.loft.sh/v1`: confidential capacity for tenants
    machineconfiguration/    `machineconfiguration.openshift.io/v1`: what a machine should look like, and how far it got
    nfd/                     `nfd.openshift.io` and `nfd.k8s-sigs.io`: what nodes can do, found out and turned into labels
    not_acted_on.py          What is stored and not acted on: kinds and fields that change nothing, with what to do instead
    objects.py               Raw objects and how to look at them
    openshift/               Kinds of OpenShift and its companions that users of the manuals touch
    operator_openshift/      `operator.openshift.io`: settings of the machine-config operator, and an older kind about mirrors
    predicates.py            Conditions that fields of several kinds share, each as a CEL rule with the words that users know
    registry.py              Where all kinds are found
    schema.py                A small vocabulary for structural schemas
    trusted_execution/       `trusted-execution-clusters.io/v1alpha1`: which machines and images a confidential cluster trusts

A module declares its kinds as data (`Kind`): group, version, names, scope, schema, printer columns, subresources. Everything
else is derived from those entries: the REST paths and the discovery of the embedded API, the CRD manifests in `deploy/crds`,
the tables that kubectl prints, the reference pages. Adding a kind touches one file; `registry` finds it.
"""
