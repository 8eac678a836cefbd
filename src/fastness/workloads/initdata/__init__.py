"""Init data of confidential pods: what is measured, what is wrong with it, and how it gets into a workload.

    finding.py     one thing that is wrong: code, severity, reason, what to do
    registers.py   HOSTDATA, MRCONFIGID and PCR 8 of a document, and the reference values made from them
    lint.py        every rule about the document and its aa.toml and cdh.toml
    workload.py    annotation and runtime class in manifests

The policy inside is judged by `workloads.agent_policy`. Init data is measured but not secret: the host reads every byte.
"""
