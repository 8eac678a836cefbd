"""What the doors of release share over a cluster: tokens, callers, settings, sources.

admins.py          Credentials of the broker's administrators
callers.py         Who asks with a token: the same at the gate and the broker
configs.py         Configurations as the gate hands them out, and the internal port of the config server
copies.py          Configurations as resources of the broker: `pool/<name>/config` and `trust`, sealed to the machine
day_two_nodes.py   Which nodes that never attested may come on day two
node_trust.py      What nodes have beside their configuration, as the config server hands it out
disk_keys.py         Keys of disks, as the broker hands them out, to an unlock session of the machine
join_credentials.py  What a machine of a pool without attestation joins by: a kubeconfig with a token made for it alone
overlays.py        What one machine gets: the configuration of its pool with the NodeOverlays for it on top
refusal_log.py     Refusals of machines that proved themselves: Events, and final ones on the record
releases.py        The one way out of gate and broker; whether a rendered config is meant for the machine that names it
replies.py         The bytes that machines get, made once per (pool, rendered config, version) and kept
resources.py       What the key broker hands out, and where it lies
revocations.py     Whether a token still counts: its machine is still ours, and nothing it proved is distrusted
settings.py        What the cluster demands now: rules, lifetimes, policies about resources
signed_configs.py  A configuration for one machine, put together and signed by the config server, with a key of its own
tokens.py          Tokens that say what a machine proved: EAR, ES256, under keys of this cluster
vault_secret.py    The vault key of the broker in a Secret of its own, for a cluster whose replicas share no disk
vault_turning.py   A new vault key for brokers that share one, while all of them go on serving
"""
