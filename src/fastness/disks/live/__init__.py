"""The Secrets that hold the keys of disks.

key_store.py  The keys of Machines' volumes: made, read, replaced and destroyed
unlocked.py   What a release of a disk key leaves on the Machine
"""
