"""What goes into an operating system image, and what a machine measures when it boots one.

    authority.py    Which entry of the firmware's db lets an image start
    boot_files.py   Where an image keeps what a machine boots, and what of it is there
    check/          What the host of a machine can say to it, and which of these ways an image leaves open
    difference.py   What is different between two images: their files, their packages, and what machines measure that boot them
    errors.py       Why an image cannot be measured ahead of time
    firmware.py     What the firmware of a machine brings to a measurement: the variables of Secure Boot
    loader.py       What a version of systemd-boot does with the command line of the image that it starts
    measure.py      What a machine will measure when it boots a unified kernel image, by itself or through systemd-boot
    measurement.py  A prediction: events in the order in which they happen, and the registers that they end in
    platforms.py    Which kinds of machines a cluster has: firmware variables by pool, as its administrator says
    signatures.py   Who has to have signed an image, and who has
    stub.py         What a version of systemd-stub does with the sections of an image: measure, tidy, pack
    transition.py   What machines may measure while an image replaces another: the same image under other boot loaders
    uki.py          Writing unified kernel images: a boot stub and sections, the same bytes for the same input
    verity.py       dm-verity: a tree of hashes over a file system that is only read
    whole_image.py  What machines measure that boot an image, from the files in it

How it is used:

    measurement = predict(BootChain(uki, systemd_boot, gpt), FirmwareVars.of_store(vars_fd), secure_boot=True)
    measurement.registers[11].hex()

Where a real boot left the prediction is said by `attestation/values/prediction.py`.
"""
