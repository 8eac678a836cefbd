"""The loops of builds: from MachineOSConfig and pool to an image in a registry, and from an image back to nothing.

builds.py      one pool at a time: check, order, build, tell, prune
under_way.py   one build while it runs: its log is kept, its progress told, and it ends when nobody wants it
logs.py        where the log of a build is kept
default_configs.py  a MachineOSConfig for every pool that nobody described an image for, while the cluster is layered by default
leaving.py     whether the nodes of a MachineOSConfig come back when it goes
pull_credentials.py  what proven nodes of a pool pull its image with, put where the config server reads it
statuses.py    what is written: conditions and places of MachineOSConfigs and MachineOSBuilds
measures.py    what is counted of builds
"""
