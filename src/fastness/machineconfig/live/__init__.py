"""What machine configuration asks of others than the cluster.

registry.py          Images in registries: their labels and single files, read without pulling them
registry_session.py  A talk with one registry about one image: manifests and blobs, read and written
saved_images.py      Images of registries, saved into one directory (OCI image layout), in an order that is kept
"""
