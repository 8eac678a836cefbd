"""Tickets, enrolments and bootstrap tokens of a cluster.

approvals.py         What is decided about a kubelet's request, written where the signer of Kubernetes reads it
bootstrap_tokens.py  Bootstrap tokens of Kubernetes, one for each machine that proved itself
door_events.py       Releases and refusals, told as Events of the object that they are about
enrolments.py        Enrolment over the cluster: ticket, proof, count, record, Machine; in this order
joined_nodes.py      Nodes that came by the token of a pool: which name has which pool
pin_registration.py  Machines that the Clevis pin enrols, over the cluster: a config for a ticket, a Machine for a key
pool_tokens.py       Bootstrap tokens of pools that do not attest, one for each answer of the config server
guest_tickets.py     The ticket of a guest is counted when the guest has proved something: at its first affirmed verdict
tickets.py           Join tickets: who may knock, for which pool and until when; how doors know them, and how often they were used
tpm_makers.py        Certificates of those who make TPMs
"""
