"""Rules about images of pools: what may be said about image mode, and when it may be left.

image_mode.py  Stage and push place of the cluster can be read; a MachineOSConfig goes when its nodes would come back
"""
