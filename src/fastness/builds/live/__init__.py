"""Builders, and transfers from and to registries.

builder.py       the port: what a loop asks of whoever builds
buildah.py       the builder here: lay out, build, collect, push
job_builder.py   a builder elsewhere: a Kubernetes Job, asked for, followed, read
pod.py           what runs in the containers of that Job
workshop.py      the directory of one build, and what is run in it
sandbox.py       the process around it: namespaces of its own, no network, limits
transfers.py     images from and to registries
image_signer.py  a signature beside what was built, by the key of the cluster
layout.py        images as directories: the base that a build begins with, and what it made
removal.py       taking away what a build left, however deep it lies
seal.py          the second pass of a sealed build: the kernel image that names the root, in a layer of its own
"""
