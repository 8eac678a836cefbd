"""The gate: a configuration for a machine that holds a live grant, and nothing for anybody else.

app.py     `/config/<pool>` for machines that proved themselves, on first boot and later
server.py  The gate as one thing that can be opened and closed: caches, keys, certificate, listener, rotation
"""
