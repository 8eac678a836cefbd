"""Simulation: virtual machines that run the real agent.

Used by tests and by the verbs that start a whole cluster on a laptop; nothing else imports it. What is simulated says so:
nodes carry the annotation `fastness.dev/simulated`.
"""
