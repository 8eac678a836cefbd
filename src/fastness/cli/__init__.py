"""The command `fastness`: one package per family of verbs.

    main.py       The command and the names of its verbs
    exits.py      Exit codes, the same for every verb
    output.py     Printing: for people by default, JSON with `-o json`
    errors.py     What the rooms raise, as one sentence for a person and an exit code
    manifests.py  Manifests from files: YAML or JSON, several documents, lists, directories, standard input
    version.py    `fastness version`
    run/          Verbs that run a cluster, or something of it
    machine/      Verbs that run on a machine
    trust/        Verbs about who is believed, and why
    images/       Verbs about images of machines
    config/       Verbs about the configuration of machines
    workloads/    Verbs about confidential containers
    support/      Help for whoever runs a cluster: the checks of `doctor`, and support bundles

`main` imports a family only when one of its verbs runs, so that `--help` and completion stay fast.
"""
