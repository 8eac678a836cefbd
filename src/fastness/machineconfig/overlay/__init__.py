"""Node overlays: what one node has beside the config of its pool.

merged.py   Fragments over the configuration of a pool: the bytes that one machine gets
overlay.py  What one machine gets besides the configuration of its pool: NodeOverlays
targets.py  Which overlays every node should have: the digest of those that are for its machine
"""
