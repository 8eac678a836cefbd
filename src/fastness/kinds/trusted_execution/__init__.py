"""`trusted-execution-clusters.io/v1alpha1`: which machines and images a confidential cluster trusts.

All kinds are namespaced. What a person or an enrolment states is immutable; what was found out about it is in the status.
"""

GROUP = "trusted-execution-clusters.io"
VERSION = "v1alpha1"
