"""Fastness: the control plane for clusters on machines whose owner is not trusted.

A machine is given configuration, keys and a place in the cluster only after it has proved what it booted.
A small shared floor, then one room for each component; inside a room only `live`, `loops` and `door` touch the world. From the
roots down to the floor, as imports go:

    cli/            The command `fastness`: one package per family of verbs
    app/            The composition root of `up` and `serve`: who is built with whom, and what each part may do
    sim/            Simulation: virtual machines that run the real agent, and everything that can go wrong with them
    page/           The page: what stands in the cluster, for people, in a browser
    admission/      Admission: may this write happen, as it is? The product's table of rules, and the webhook that asks it
    release/        Who may have what: tokens, possession, `authorise`; key broker, gate and config server
    workloads/      Confidential containers: features of nodes, the runtime, what is sealed for pods, operators
    builds/         Images of operating systems that are built here: checked, ordered, built in a sandbox, pruned
    machineconfig/  From MachineConfigs to what every machine of a pool should be, and how it gets there
    enrolment/      How a machine gets a name here: ticket, key, endorsement, and later its kubelet certificate
    attestation/    From evidence to a verdict, and what a verdict means afterwards
    disks/          Disks that only a proven machine opens: keys, what machines report of them, and how both end
    record/         The append-only record: entries, order, signed head, proofs, witnesses
    images/         What goes into an operating system image, and what a machine measures when it boots one
    pools/          Which pool a node is in
    agent/          The far side: what runs on a machine, proves what it booted, and makes it what its rendered config says
    apiserver/      A Kubernetes API server in one process; it knows the floor and nothing else
    http/           One door for all: routes, edge, limits, refusals, listener, certificate and its rotation
    keys/           A cluster's own keys and certificates: made, sealed, rotated
    rego/           Rego with its traps closed, asked in a process of its own
    kube/           A Kubernetes API as its client sees it: one port, the client of any API server, informers, controllers
    protocol/       What machines, guests and the cluster say to each other; pure, and imported by both sides
    formats/        Bytes to values and back, without I/O: the one home of hostile input
    crypto/         The one place that imports primitives of cryptography
    kinds/          What exists: one package per API group, typed views, the names they agree on
    runtime/        What everything long-running needs: time, background tasks, retries
    observe/        Seeing what happens: logs, metrics, correlation

The rules of imports stand in pyproject.toml; docs/explanation/architecture.md walks through the rooms.
"""

__version__ = "0.1.0"
