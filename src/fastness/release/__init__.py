"""Who may have what: tokens, proof of possession, authorisation; the key broker, the gate and the config server.

authorise.py   Who may have what: the one decision, and the one place where a Grant is made
source.py      What doors hand out: resources that only a Grant opens
handshake.py   The handshake of the key broker without I/O: messages and cookies in, messages and cookies out
ear.py         EAR tokens: what was proved about a machine, as claims (RFC 9711, EAT attestation results)
configs.py     What doors and config server say to each other
kbs_config.py  What a KbsConfig means here: the objects that its ConfigMaps stand for, and what is wrong with it
live/          What the doors of release share over a cluster: tokens, callers, settings, sources
loops/         The loop that keeps the configuration of a key broker
door/          The doors that release something: keys, configurations, bootstrap tokens
"""
