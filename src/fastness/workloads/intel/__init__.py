"""Intel's part of attesting TDX guests, as objects: who certifies the platform, who signs quotes on each host.

dcap.py    Every object of Intel's remote attestation in a cluster, from a few inputs
parts.py   Pieces that objects of the caching and the quoting service share: names, labels, pods, volumes
tokens.py  Tokens of the caching service (PCCS), and Intel's API key
"""
