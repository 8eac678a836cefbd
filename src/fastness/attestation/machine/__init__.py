"""A machine's place and proof over time.

chip.py           The chip under a machine: what its owner cannot change, and what is therefore pinned, compared and barred
decisions.py      What a person decides about a machine: approve it, put it into quarantine, end the quarantine
machine.py        A machine's place in the cluster: the objects that enrolment makes, and what they say
proof_age.py      How a machine's proof stands, and what that means for its node
signed_status.py  Whose word the status of a Machine is: signed by the part of the control plane that wrote it
"""
