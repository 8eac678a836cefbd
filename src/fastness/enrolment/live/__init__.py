"""Tickets, enrolments and bootstrap tokens of a cluster.

bootstrap_tokens.py  Bootstrap tokens of Kubernetes, one for each machine that proved itself
door_events.py       Releases and refusals, told as Events of the object that they are about
enrolments.py        Enrolment over the cluster: ticket, proof, count, record, Machine; in this order
guest_tickets.py     The ticket of a guest is counted when the guest has proved something: at its first affirmed verdict
tickets.py           Join tickets: who may knock, for which pool and until when; how doors know them, and how often they were used
tpm_makers.py        Certificates of those who make TPMs
"""
