"""The command `fastness`: one package per family of verbs.

    main.py         The command and the names of its verbs
    lazy.py         Groups of verbs that are imported one by one
    errors.py       How a verb ends: its exit code, and the error that a person reads
    room_errors.py  Errors of the rooms, as one sentence for a person and an exit code
    output.py       Printing: for people by default, JSON with `-o json`
    cluster.py      The cluster that a verb talks to: the options that name it, and the connection
    manifests.py    Manifests from files: YAML or JSON, several documents, lists, directories, standard input
    version.py      `fastness version`
    run/            Verbs that run a cluster, or something of it
    machine/        Verbs that run on a machine
    trust/          Verbs about who is believed, and why
    images/         Verbs about images of machines
    config/         Verbs about the configuration of machines
    workloads/      Verbs about confidential containers
    support/        Help for whoever runs a cluster: the checks of `doctor`, and support bundles

`main` imports the module of a verb only when the verb runs, so that `--help` and completion stay fast. Modules import what they
need at their top; where verbs of one family differ in weight, each has a module of its own.
"""
