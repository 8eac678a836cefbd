"""What a new machine of a pool is created with: user-data, tickets, boot images.

    boot_image_stream.py   The boot images of the release, as the ConfigMap of the cluster has them
    boot_images.py         Boot images: machine sets are kept at the images of the release, and moved to managed user-data
    installer_pointers.py  Pointers that an installer made (`<role>-user-data`): left alone, but for those that are ours
    pool_ticket.py         The join tickets in the user-data of pools: minted, rotated, forgotten
    user_data.py           Managed user-data: what a new machine of a pool is created with

A Secret that somebody else made is left alone; what is changed and why is decided in `machineconfig/boot_images`.
"""
