"""Tickets, enrolments and bootstrap tokens of a cluster.

bootstrap_tokens.py  Bootstrap tokens of Kubernetes, one for each machine that proved itself
door_events.py       Releases and refusals, told as Events of the object that they are about
enrolments.py        Enrolment over the cluster: ticket, proof, count, record, Machine; in this order
guest_tickets.py     The ticket of a guest is counted when the guest has proved something: at its first affirmed verdict
ticket_cache.py      The tickets as a door knows them: from its cache, else from the API
ticket_uses.py       How often a join ticket was used
tickets.py           Join tickets: who may knock, for which pool, how often and until when
tpm_makers.py        Certificates of those who make TPMs
"""
