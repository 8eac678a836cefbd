"""`machineconfiguration.openshift.io/v1`: what a machine should look like, and how far it got.

All kinds are cluster scoped and carry the label that marks definitions an operator manages. Names, columns and limits are
those of the public API, so that manifests and habits carry over.
"""

GROUP = "machineconfiguration.openshift.io"
VERSION = "v1"
LABELS = {"openshift.io/operator-managed": ""}
