"""What machines, guests and the cluster say to each other; pure, and imported by both sides.

clevis.py             What the Clevis pin `trustee` of trusted-execution clusters and the cluster say to each other
config_proof.py       The signature of a served configuration: these bytes, for this machine, for this request
delivered.py          A configuration that the key broker delivers: the question, and the sealed answer
disk_keys.py          The keys of a machine's disks, as the broker answers with them
disk_report.py        What a machine reports of the disks that it opened, in its ordinary sessions
door.py               A door as machines know it: where it is, and the role that its certificate names
dpop.py               Proof of possession on every request: DPoP (RFC 9449), with nonces of the server
enrolment.py          The messages of enrolment, as they go over the wire
files_of_others.py    Files that other operators write on nodes: declared once, by path and owner
guest_key.py          How a machine without a TPM shows which machine it is, and which boot of it
ignition_spec.py      The versions of the Ignition spec, in their order
kbs.py                The messages of the KBS protocol, version 0.4.0, as guests in the field send them
kbs_path.py           Resources of the key broker: their paths, the addresses by which guests name them, patterns of paths
machine_names.py      The names that follow from a machine's key: its thumbprint, its objects, its node
node_certificates.py  What the certificates of a node are called, and for which hosts they may speak
node_keys.py          The keys of a node's certificates: named in an attested session, good for one certificate
node_trust.py         What a node has beside its rendered config: whom it believes, credentials of the cluster's own registry
pointer.py            The pointer: the small Ignition config that leads a machine to the agent on its own loopback
sealed.py             Text that lies in an ordinary Kubernetes Secret and means something only inside an attested guest
unlock.py             Unlock sessions: how a machine asks for the key of its disk, before it has its own identity
unlock_note.py        The note beside a locked volume: who this machine is and where its broker is, in clear
user_data.py          User-data, read strictly: which pool, with which ticket, at which server; also as init-data
user_data_event.py    What a machine took from its user-data, as an event of its log, and the registers of platforms
usr_places.py         Where a default of ours lives below /usr in an image, for paths that have such a place
witness.py            What a log sends to a witness (C2SP tlog-witness, `add-checkpoint`), and what a witness answers with
"""
