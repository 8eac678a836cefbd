"""The builder of this machine: buildah in a sandbox, and transfers from and to registries.

builder.py     the port: what a loop asks of whoever builds
buildah.py     the builder here: lay out, build, collect, push
sandbox.py     the process around it: namespaces of its own, no network, limits
seal.py        the second pass of a sealed build: the kernel image that names the root, in a layer of its own
layout.py      images as directories: the base that a build begins with, and what it made
"""
