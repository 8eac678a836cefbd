"""Boot images: what machines of a set boot, which Ignition that reads, and how a set is kept at the images of the release.

    releases.py         Which Ignition spec a boot image reads, by its release
    makers.py           What makes machines: a MachineSet or a ControlPlaneMachineSet, its image and its user-data
    pointer_version.py  Of which Ignition version a pointer is: what the boot images of all sets that use it read
    images.py           The image of the release for one set, by provider: what would be written, or why nothing is
    manage.py           Which sets are looked after, what each gets, and what MachineConfiguration reports about it

All of it is a function of objects and of the stream metadata in the cluster (`formats.coreos_stream`): no cloud is asked.
"""
