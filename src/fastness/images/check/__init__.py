"""What the host of a machine can say to it, and which of these ways an image leaves open.

    open_ways(Image(root=tree))                 every way that stands open, with what shows it and what closes it
    pieces(Shape.DEBIAN, tree, parts)           the files and links that close them and put the agent in

A measured image proves which programs run, not whom they listen to: stock systems take units, keys and passwords from their
hypervisor because that is what a cloud wants. `ways` is the list, as data; `way` says what a way is; `tree` is the port through
which files are looked at; `kernelline` finds kernel command lines; `looks` holds the questions that data cannot express; `check`
decides; `bootimage` says what a unified kernel image shows; `layout` says what an image gets (`piece`) and `node` what its
kubelet is told. The agent's own reader of user-data is elsewhere: here is what would bypass it.
"""
