"""The loop of builds: from MachineOSConfig and pool to an image in a registry, and from an image back to nothing.

builds.py      one pool at a time: check, order, build, tell, prune
statuses.py    what is written: conditions and places of MachineOSConfigs and MachineOSBuilds
"""
