"""`fastness.dev/v1alpha1`: our own kinds, where public ones end.

They say how strict the cluster is, who may knock, what is trusted and no longer trusted, how changes are rolled out, and what was
decided and released. Every field has a description, because `kubectl explain` is where users look first.
"""

GROUP = "fastness.dev"
VERSION = "v1alpha1"
LABELS = {"fastness.dev/set": "core"}
CATEGORIES = ("fastness",)
NAMESPACE = "fastness-system"
"""Where the objects of the control plane itself live."""

EVIDENCE_TYPES = ("tpm", "tdx", "snp", "az-snp-vtpm", "az-tdx-vtpm", "nvidia")
# How it was shown that a machine's key lives where it says.
ENDORSEMENTS = ("ek-certificate", "trust-on-first-use", "evidence")
