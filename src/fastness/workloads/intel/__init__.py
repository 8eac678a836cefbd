"""Intel's part of attesting TDX guests, as objects: who certifies the platform, who signs quotes on each host.

tokens.py     tokens of the caching service: which are too weak, and how they are kept
dcap.py       every object of namespace intel-dcap, from a few inputs
parts.py      the pieces that these objects share
"""
