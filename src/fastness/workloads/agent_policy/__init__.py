"""The policy of the agent inside a confidential pod: which requests of the host it obeys.

    decide.py    Whether the agent would obey a request, and because of which statement
    generate.py  A restrictive policy from the manifest of a workload
    lint.py      What is wrong with an agent policy: every permissive request, one by one
    reading.py   The statements of a policy text, with their lines, without running it
    requests.py  The requests of the host, what each gives it, and what people call them

The host sends every request: a policy is the border between what a tenant asked for and what the host would like. Text that a
user wrote meets the engine in a process of its own first (`workloads/live/agent_policies.py`).
"""
