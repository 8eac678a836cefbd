"""`kataconfiguration.openshift.io/v1`: the runtime for confidential containers."""

GROUP = "kataconfiguration.openshift.io"
VERSION = "v1"
