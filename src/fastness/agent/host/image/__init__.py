"""Images of disks, looked into and filled.

disk.py    The root of a raw disk image, mounted for the time of a block
root.py    The root directory of an image that is being built: looked at by the checks, filled by `prepare`
unzstd.py  Unpacking zstd with the program of that name, for initial file systems that are packed so
"""
