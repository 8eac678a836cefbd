"""`operator.openshift.io/v1`: settings of the operator that looks after machine configuration."""

GROUP = "operator.openshift.io"
VERSION = "v1"
