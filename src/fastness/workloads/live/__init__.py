"""Agent policies, tried in the process for policies.

agent_policies.py  Asking agent policies in a process of their own, for the verbs and for doors that let workloads in
"""
