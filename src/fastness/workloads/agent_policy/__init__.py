"""The policy of the agent inside a confidential pod: which requests of the host it obeys.

    requests.py    the requests, what each gives the host, and what people call them
    reading.py     the statements of a policy text: package, defaults, rules
    lint.py        permissive requests, one by one, with a severity and a reason
    decide.py      whether a request is allowed, and by which statement (runs the Rego engine)
    generate.py    a restrictive policy from a pod manifest

The host sends every request: a policy is the border between what a tenant asked for and what the host would like. Text that a
user wrote meets the engine in a process of its own first (`workloads.live.agent_policy`).
"""
