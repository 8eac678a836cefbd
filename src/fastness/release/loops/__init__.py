"""The loop that keeps the configuration of a key broker.

kbs_config.py  Settings of a broker that somebody knew before, brought to the one that is built in
"""
