"""Which pool a node is in.

membership.py  Which pools a node is in, by what the control plane knows: the pool of its Machine before any label
"""
