"""Event logs of measured boot: what was extended into which register, in order.

`log` reads the TCG crypto-agile format, which TPM machines (PCRs) and confidential VMs (CCEL, RTMRs) share; they differ in
what the register numbers mean. A log is a claim by the machine itself: only a replay that ends in signed register values
makes it worth anything (`fastness.attestation.evidence.replay`).
"""
