"""From MachineConfigs to nodes that run them.

    machines/           Machines for machine sets, and how they come and go
    first_boot/         What a new machine of a pool is created with: user-data, tickets, boot images
    rendering/          From everything that is said about a pool to one rendered config
    updates/            From a rendered config to nodes that run it: who goes next, what holds it back, and who makes way
    nodes/              What is kept about each node, and what it has beside its rendered config
    controllers.py      All loops of machine configuration, ready to run
    timing.py           How long these loops wait: the constants of the field, and faster ones for simulated clusters
    announcements.py    Remarks about objects, told once: an event when a remark is new, none while it stays the same
    other_operators.py  Whether another machine-config operator works in this cluster

All decisions are in the other packages of the room; times are in `timing`, because a simulation runs the same loops faster.
"""
