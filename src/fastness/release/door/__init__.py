"""The doors that release something: keys, configurations, bootstrap tokens.

broker/         The key broker: the KBS protocol over TLS, its administration, and introspection of tokens
config_server/  The config server: the door at which a booting machine asks for its configuration
gate/           The gate: a configuration for a machine that holds a live grant, and nothing for anybody else
"""
