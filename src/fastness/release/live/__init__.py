"""What the doors of release share over a cluster: tokens, callers, settings, sources.

admins.py          Credentials of the broker's administrators
assignments.py     Whether a rendered config is meant for the machine that asks for it by name
callers.py         Who asks with a token: the same at the gate and the broker
copies.py          Configurations as resources of the broker: `pool/<name>/config`, sealed to the machine that asks
day_two_nodes.py   Which nodes that never attested may come on day two
overlays.py        What one machine gets: the configuration of its pool with the NodeOverlays for it on top
policies.py        The resource policies that count now, made of the AppraisalPolicies in the cache
refusal_log.py     Refusals of machines that proved themselves: Events, and final ones on the record
releases.py        The one way out of gate and broker
replies.py         The bytes that machines get, made once per (pool, rendered config, version) and kept
resources.py       What the key broker hands out, and where it lies
revocations.py     Whether a token still counts: its machine is still ours, and nothing it proved is distrusted
settings.py        What the cluster demands of the broker, as the ConfidentialCluster says now
signed_configs.py  A configuration for one machine, put together and signed by the config server
signer.py          The key that signs served configurations, the config server's alone
sources.py         The config server behind its internal port, as gate and broker reach it
tokens.py          Tokens that say what a machine proved: EAR, ES256, under keys of this cluster
"""
