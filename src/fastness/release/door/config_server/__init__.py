"""The config server: the door at which a booting machine asks for its configuration.

    app.py       `/config/<pool>` for machines that boot, `/config/<pool>?rendered=<name>` for agents of machines that run
    callers.py   Who may have the config of which pool on the ticket port
    day_two.py   The one way out for rendered configs of nodes that never attested
    internal.py  The config server's internal port: configurations for gate and broker, which pass them on
    server.py    The config server as one thing that can be opened and closed: caches, authorities, two listeners, rotation

Who may ask follows from the pool's trust model: a machine of an ordinary pool shows a join ticket when it boots, and the
certificate of its node from then on. A confidential pool is served to nobody on the ticket port, because its machines come
through the gate or the broker.
"""
