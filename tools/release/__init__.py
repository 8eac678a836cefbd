"""The images and the release: what users get, built from pins, and the same bytes whoever builds it.

    python -m tools.release image              the images as OCI layouts in .build/image
    python -m tools.release release --key PEM  everything that belongs to a release, in dist
    python -m tools.release verify DIRECTORY   whether such a directory is whole, and signed by a key
    python -m tools.release lock               take the newest Debian packages

An image has three layers or four, from what changes seldom to what changes with every commit: Debian with Python, dependencies,
programs that it needs beside Python, and Fastness itself. Each is kept in the user's cache under a key of everything that went
into it, so a build does only what changed.

    debian.py    the packages of Debian: their pins, fetching, and which of their files an image needs
    wheels.py    the dependencies in Python: fetched by the lock with its hashes, unpacked, looked into
    bytecode.py  compiling with the interpreter of the image, so that no other Python leaves a trace
    layer.py     a directory as a layer: sorted, without owners, times or chance, and kept
    image.py     which image has which layers, and what a runtime is told about it
    layout.py    images as OCI layouts: writing, reading, archiving
    registry.py  a layout to a registry
    sbom.py      what is in an image, as CycloneDX
    signing.py   signatures as cosign makes them, and their verification
    dist.py      the directory of a release
    checking.py  whether a directory of a release is what its maker signed
    errors.py    what can go wrong
"""
