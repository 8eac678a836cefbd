"""The loop of builds: from MachineOSConfig and pool to an image in a registry, and from an image back to nothing.

builds.py      one pool at a time: check, order, build, tell, prune
under_way.py   one build while it runs: its log is kept, its progress told, and it ends when nobody wants it
logs.py        where the log of a build is kept
pull_credentials.py  what proven nodes of a pool pull its image with, put where the config server reads it
statuses.py    what is written: conditions and places of MachineOSConfigs and MachineOSBuilds
measures.py    what is counted of builds
"""
