"""Loops about keys of disks: they are made, replaced and destroyed.

key_maker.py  Makes the keys of Machines that shall have an encrypted volume; runs with the broker, which has the vault
key_life.py   Holds Machines that have keys, says how their volumes stand, and destroys what is no longer needed
"""
