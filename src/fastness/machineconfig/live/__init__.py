"""What machine configuration asks of others than the cluster.

image_signatures.py  The signatures beside an image, where cosign puts them
image_tree.py        The boot files of an image in a registry, read out of its layers as they come
package_databases.py  The database of packages of an image: rpm's table in SQLite, dpkg's text
registry.py          Images in registries: their labels and single files, read without pulling them
registry_session.py  A talk with one registry about one image: manifests and blobs, read and written
saved_images.py      Images of registries, saved into one directory (OCI image layout), in an order that is kept
saved_layers.py      The layers of an image in a directory (OCI image layout): read as they lie there, nothing of them unpacked
"""
