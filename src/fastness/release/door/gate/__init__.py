"""The gate: a configuration for a machine that holds a live grant, and nothing for anybody else.

app.py     `/config/<pool>` for machines that proved themselves, on first boot and later
legacy.py  Stubs of an older installer: what the gate serves under their server name, where they are switched on
server.py  The gate as one thing that can be opened and closed: caches, keys, certificate, listener, rotation
"""
