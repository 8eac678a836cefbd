"""Agent policies, tried in the process for policies.

agent_policies.py  The policy engine's opinion of agent policies, for doors that must know it before they let a workload in
agent_policy.py    Asking an agent policy in a process of its own
"""
