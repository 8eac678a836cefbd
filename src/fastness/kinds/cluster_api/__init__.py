"""`bootstrap.cluster.x-k8s.io/v1alpha1`: what Cluster API asks of a bootstrap provider, by its contract v1beta2.

    bootstrap.py  FastnessConfig and FastnessConfigTemplate: which pool a Machine of Cluster API boots into
    owners.py     The kinds of Cluster API itself that are read: Cluster and Machine

The group is that of Cluster API, so that its controllers may read our objects without another role.
"""

GROUP = "bootstrap.cluster.x-k8s.io"
VERSION = "v1alpha1"
LABELS = {"cluster.x-k8s.io/provider": "bootstrap-fastness", "cluster.x-k8s.io/v1beta2": VERSION}
