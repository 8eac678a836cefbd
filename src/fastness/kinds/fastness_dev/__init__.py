"""`fastness.dev/v1alpha1`: our own kinds, where public ones end.

    appraisal_policy.py  AppraisalPolicy: what a user's policy says about evidence or resources
    audit.py             AuditBatch and AuditCheckpoint: the record
    cluster.py           ConfidentialCluster: how strict the cluster is. A singleton called `cluster`
    declare.py           How our kinds are declared, and the fields that several of them have
    distrust.py          Distrust: what is no longer trusted, whatever it proves
    evidence.py          SpentChallenge, SeenLaunch and EvidenceBlob: what a door keeps of an attestation
    image_approval.py    Which images machines may boot: who approves them, and who must have signed them
    join_ticket.py       JoinTicket: who may knock, for which pool, how often and until when
    reference_values.py  ReferenceValueSet: what machines are expected to measure
    resource_binding.py  ResourceBinding: who may read a resource that belongs to no machine, pool or tenant by its name
    rollout.py           NodeOverlay and RolloutPolicy: how one machine differs, and how changes travel
    tenant_cluster.py    TenantCluster: a cluster for one tenant
    trust_model.py       What a pool's machines are to the cluster
    verdict.py           Verdict: what an appraisal found, check by check

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
