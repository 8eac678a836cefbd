"""Pinned images: pulled ahead of time, verified, and kept by the container runtime.

    ports.py     What pinning needs of a container runtime, as small as it can be
    plan.py      What is to be pinned, whether there is room for it, and what is reported about it
    prefetch.py  One way from the images that a runtime has to those that it should keep
    report.py    What the MachineConfigNode says about pinned images
    loop.py      The loop: follow the note on the Node, begin anew when it changes, look again after a while

`plan` is pure. Nothing is remembered on the disk: an agent that was killed asks the runtime what is there.
"""
