"""Verbs that run on a machine.

agent.py         `fastness agent`: the part of Fastness that runs on a machine
agent_errors.py  Errors of the agent's layers as sentences
agent_kata.py    `fastness agent kata`: what the pods of the runtime's DaemonSets run on a node
agent_node.py    How `fastness agent run` gets configs for a node that never attests
agent_proof.py   `fastness agent boot|attest|join`: a machine that proves what it booted
"""
