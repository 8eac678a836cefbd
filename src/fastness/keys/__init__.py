"""A cluster's own keys and certificates: made, sealed, rotated.

authorities.py         An authority that lives in a Secret of the cluster and changes with overlap
certificates.py        Certificates of the doors: each role's in a Secret of its own
client_authorities.py  The authorities of a cluster whose client certificates count, nodes' among them
doors.py               The authority of the doors (gate, config server, broker, enrolment) and what each shows
errors.py              What can be wrong with the keys of a cluster
home.py                The namespace that everything of ours lives in, watched: `fastness-system`
image_keys.py          The key that a cluster signs the images with that it built
internal.py            The authority between our own parts: who may ask the config server's internal port
legacy_stubs.py        Certificates under which the gate answers stubs of an older installer, of that installer's authority
key_files.py           Private files: read only when they are private, written all or nothing
keyrings.py            Keys that live in a Secret of the cluster and change by themselves
mac_keys.py            The MAC keys of the doors: challenge cookies, sessions, nonces of proofs
people.py              People who log in at an identity provider: whose token it is, and what of it counts here
pki.py                 The keys of the API: its authority, its serving certificate, its administrator, its token key
ring_files.py          Where the ring of vault keys lives: in a private file, or in one that a command wraps
shared_cipher.py       A cipher whose key another process may turn: opening what is newer, leaving no write behind
vault.py               The vault: what is secret at rest is sealed with a key that is not in the store
"""
