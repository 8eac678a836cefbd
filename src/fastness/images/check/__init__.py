"""What the host of a machine can say to it, and which of these ways an image leaves open.

    boot_image.py   What a unified kernel image shows of itself: its command line, and the files of its initial file system
    check.py        Which ways into an image stand open
    kernel_line.py  Kernel command lines of an image: where a tree keeps them, and what their words say
    layout.py       What an image gets: the agent, whom it believes, what starts it, and what closes the ways in
    looks.py        Questions to an image that a list of names cannot express; each answers with the places that stand open
    node.py         What the kubelet of an image must be told: its keys are the agent's (ADR 43)
    programs.py     The programs that make a machine a node, where the image brings them
    tree.py         The files of an image: those that are there, and those that are put there
    ways.py         The ways by which a host speaks to its guest: what one is, and all that are known

A measured image proves which programs run, not whom they listen to: stock systems take units, keys and passwords from their
hypervisor because that is what a cloud wants. `open_ways(Image(root=tree))` gives every way that stands open, with what shows it
and what closes it; `pieces(Shape.DEBIAN, tree, parts)` the files and links that close them and put the agent in. The agent's own
reader of user-data is elsewhere (`agent/host/user_data`): here is what would bypass it.
"""
