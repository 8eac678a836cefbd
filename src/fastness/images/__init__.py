"""What goes into an operating system image, and what a machine measures when it boots one.

    measurement = measure_uki(uki, FirmwareVars.of_store(vars_fd), secure_boot=True)
    measurement.registers[11].hex()

`firmware` is what the machine's firmware brings (keys and the Secure Boot switch), `authority` finds the key that lets an image
start, `measure` computes registers and events, `measurement` holds them and turns them into manifests and reference values,
`difference` says where a real boot left the prediction, `uki` writes images.
"""
