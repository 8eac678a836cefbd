"""Streams of operating system images: where they come from, what is on offer, which one pools get by default.

    sources.py    Where streams come from: a ConfigMap and the release image, and when they are looked at again
    offers.py     From labels of images to streams on offer, and the one that pools get which name none
    readiness.py  Whether rendering may begin, as far as streams go: they were looked at, and by this version of ours
    access.py     Where an image is asked for, and with which credentials: mirrors, registries without TLS, the pull secret

The loop is `loops/rendering/streams.py`; what a pool makes of its stream is decided in `render/inputs.py`.
"""
