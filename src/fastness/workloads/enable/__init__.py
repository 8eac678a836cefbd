"""One step from bare metal to runtime classes: what has to be there, what is there, and what stands against it.

    changes.py    Wanted and present objects compared: what is created, what is changed, what is kept and why
    inputs.py     What is asked for, and what is looked at
    manifests.py  The objects that the manual has people write by hand, from namespaces to the KataConfig
    preflight.py  Checks before anything is touched, each with what was found, why it matters and what to do
    steps.py      Everything that has to be there for a request, in the order of the manual; which machines would restart

All of it is pure. `fastness enable` reads the cluster, asks here, prints, and writes; run twice, it finds nothing to do.
"""
