"""One step from bare metal to runtime classes: what has to be there, what is there, and what stands against it.

    world.py      what is wished for, and what is looked at
    manifests.py  the objects that the manual has people write by hand
    preflight.py  checks with reasons, before anything is touched
    changes.py    wanted and present objects compared: create, change or keep
    steps.py      everything that has to be there, in order
    reboots.py    which machines would restart, by the same plan that the controllers follow

All of it is pure. `fastness enable` reads the cluster, asks here, prints, and writes; run twice, it finds nothing to do.
"""
