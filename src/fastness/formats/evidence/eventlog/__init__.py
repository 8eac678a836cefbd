"""Event logs of measured boot: what was extended into which register, in order.

    log.py  The TCG crypto-agile event log (PC Client Platform Firmware Profile, "Event Logging"; CCEL uses the same records)

TPM machines (PCRs) and confidential VMs (CCEL, RTMRs) share the format; they differ in what the register numbers mean. A log is
a claim by the machine itself: only a replay that ends in signed register values makes it worth anything
(`attestation/evidence/replay.py`).
"""
