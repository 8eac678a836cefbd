"""How a machine gets a name here: ticket, key, endorsement, and later its kubelet certificate.

enrolment.py             Enrolment without I/O: a machine asks with its key, proves that it holds it, and becomes a newcomer
clevis_pin.py            Machines that the Clevis pin enrols: invited with a ticket, registered with a key on its own word
endorsement.py           Judging an endorsement: does a maker of TPMs vouch for this TPM
unattested.py            Who may become a node without a proof: tokens of pools that do not attest, and nodes that came by one
kubelet_certificates.py  Who may become a node: the decision about a kubelet's request for a certificate
trusted_cluster.py       TrustedExecutionCluster: which one counts, where it sends machines, and what it is told about itself
unproved.py              Machines that never proved anything: how many there may be, and which one gives way
live/                    Tickets, enrolments and bootstrap tokens of a cluster
loops/                   Loops about machines that join
door/                    Enrolment: the door at which a new machine shows its ticket and proves its key
"""
