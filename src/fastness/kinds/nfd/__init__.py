"""`nfd.openshift.io` and `nfd.k8s-sigs.io`: what nodes can do, found out and turned into labels.

    discovery.py  NodeFeatureDiscovery: asks for the discovery of node features
    feature.py    NodeFeature: what was found on one node
    rule.py       NodeFeatureRule: turns what was found on nodes into labels, taints and resources

Rules exist under three names that mean the same objects: two versions of the OpenShift group, and the upstream group. They share
one storage in embedded mode; a real API server keeps the two groups apart.
"""

GROUP = "nfd.openshift.io"
UPSTREAM = "nfd.k8s-sigs.io"
