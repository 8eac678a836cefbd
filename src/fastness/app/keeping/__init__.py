"""Keeping what a cluster holds: backups of a Kubernetes, and bringing them back.

cluster_backup.py     all objects of ours, the record and the keys of a cluster in one sealed file
cluster_restore.py    the same in a cluster that has none
key_rotation.py       every key of a cluster, and a new one for each at once
moved_objects.py      what an object is in another cluster, which gives it another uid
"""
