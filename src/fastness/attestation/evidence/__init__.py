"""Judging one kind of evidence: is it the vendor's word, about what, and how new.

checks.py           A verdict as data: checks in order, each with what was found, expected, and what to do
intel_documents.py  Judging Intel's documents before anything is read out of them
phases.py           Boot phases: what is extended behind an image's own measurements while it boots, and stands in no log
proofs.py           What evidence proved when it is judged from files: signature, endorsement and freshness, each by itself
replay.py           Replaying an event log, and comparing the end with registers that hardware signed
roots.py            Whom a cluster believes (pinned roots, those of an administrator, simulated ones), and the least versions
snp.py              Judging an SNP report: is it AMD's word, about which chip, and what may the host do to the guest
snp_floors.py       The oldest firmware of each generation of EPYC that still proves something
snp_tcb.py          Whether an SNP chip is still good: its generation, its firmware versions, and what AMD has revoked
tdx.py              Judging a TDX quote
tdx_claims.py       A TDX quote as claims: the names that policies for TDX evidence are written against, one type per claim
tdx_tcb.py          How new a TDX platform is: levels, statuses, and which component is behind
tpm.py              Judging a TPM quote
"""
