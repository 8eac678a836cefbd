"""From MachineConfigs to what every machine of a pool should be, and how it gets there.

    admission/         Rules about machine configuration
    ignition/          Ignition configs, specs 2.2 and 3.0 to 3.5: read, checked, merged, translated
    render/            One config for a pool: which configs it is made of, whether each is valid, what they make together
    rollout/           Who goes next, what it must do, what is reported
    trust/             What a node has beside its rendered config: certificates and credentials that change without a rollout
    scaling/           Machines on demand: what a machine set has to make or to take away, and how far a machine is
    overlay/           Node overlays: what one node has beside the config of its pool
    boot_images/       What machines of a set boot, which Ignition that reads, and how it is kept at the images of the release
    pointer.py         What a new machine boots with: a pointer to its config, and the Secret that carries it
    installer_stub.py  Pointers that an installer made: whose they are, and what may be changed in them
    pool_ticket.py     The join ticket in a pool's user-data: how long it is good, and for how many machines
    serving.py         What a booting machine is answered: which version it asks for, and the bytes of its config
    loops/             From MachineConfigs to nodes that run them
    streams/           Streams of operating system images: where they come from, what is on offer, what is the default
    live/              What machine configuration asks of others than the cluster: registries

Outside `live` and `loops` nothing reads a clock, a file or a cluster. `rollout/plan.py` puts the decisions together before
anything happens: controllers, command line and page call it alike. What a node then does with a config is `agent/apply`.
"""
