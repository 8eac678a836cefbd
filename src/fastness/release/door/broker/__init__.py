"""The key broker: the KBS protocol over TLS, its administration, and introspection of tokens.

admin.py       What administrators do through the broker, as Trustee's clients ask for it
app.py         A request from the door to the answer
introspect.py  Introspection of tokens (RFC 7662 in shape): whether a token counts at this moment, for our own parts alone
kbs.py         The three steps of a machine: ask for a challenge, answer it, take what is its own
opening.py     The broker with the verifier of its cluster behind it, as every process opens it
server.py      The broker as one thing that can be opened and closed: caches, keys, certificates, listener, rotation
values.py      Reference values through the broker, as clients of RVPS register and ask for them
"""
