"""An initial file system of ours under a real systemd: its units, and a boot that ends in its root, waits, or stops.

boots.py   One boot in namespaces: systemd as the first process of a root in memory, with the units of the dracut module
dracut.py  An initial file system that dracut builds with our module, and a machine that boots it
"""
