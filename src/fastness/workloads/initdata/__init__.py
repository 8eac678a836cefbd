"""Init data of confidential pods: what is measured, what is wrong with it, and how it gets into a workload.

    finding.py    One thing that is wrong with init data or an agent policy
    lint.py       Every rule about init data, each with a code, a severity and a reason
    registers.py  Where the digest of init data is found in evidence
    workload.py   Init data in workloads: the annotation and the runtime class, where each kind of workload has them

The policy inside is judged by `workloads/agent_policy`. Init data is measured but not secret: the host reads every byte.
"""
