"""What machine configuration asks of others than the cluster.

registry.py  Images in registries: their labels and single files, read without pulling them
"""
