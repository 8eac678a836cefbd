"""KataConfig: the loop that installs the runtime for confidential containers.

    loop.py         The loop of KataConfig: look, plan, act, tell
    look.py         What the cluster is like, as the state machine wants to know it
    act.py          Doing what the state machine says, one patch of our own fields at a time
    remote_pods.py  The gauges of pods that run as virtual machines beside their node

What is to be done is decided by `workloads/kata/plan.py`.
"""
