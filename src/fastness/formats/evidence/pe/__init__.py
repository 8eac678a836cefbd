"""Programs of UEFI firmware: PE/COFF images, what a signature covers, and the sections of unified kernel images.

    authenticode.py  What an Authenticode hash covers, and the signatures that an image carries (Authenticode_PE.docx
    image.py         PE/COFF images as UEFI firmware loads them (Microsoft PE format; UEFI 2.10 §2.1)
    loader.py        systemd-boot: the boot loader that firmware starts, and that starts a unified kernel image
    pkcs7.py         The PKCS #7 SignedData of an Authenticode signature
    uki.py           Unified kernel images: one PE file with boot stub, kernel, initial file system and command line (UAPI.5)

Nothing is hashed here; `images/measure.py` does that.
"""
