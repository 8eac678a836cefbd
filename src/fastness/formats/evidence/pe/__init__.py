"""Programs of UEFI firmware: PE/COFF images, what a signature covers, and the sections of unified kernel images.

`image` reads the headers, `authenticode` says which bytes firmware hashes and which signatures an image carries, `uki` reads
the sections that make a boot: kernel, initial file system, command line. `linux` reads what a kernel says about itself.
Nothing is hashed here; `fastness.images.measure` does that.
"""
