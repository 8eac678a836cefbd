"""Registries: where machines may pull images from, and whose signatures they ask for.

    attachments.py   registries.d: where the runtime looks for signatures
    conf.py          registries.conf: which registry is asked for an image, under which name, and whether at all
    configs.py       `99-<pool>-generated-registries`: one MachineConfig about registries for each pool with the built-in label
    containerd.py    hosts.toml: what containerd can be told about registries
    files.py         Files of a machine about registries: for CRI-O and for containerd
    mirrors.py       Lists of mirrors: whether each can be understood, and the one order that several lists make together
    objects.py       What registries are configured from, as the objects say it
    payload.py       Blocked registries and the images that the cluster itself is made of
    policy.py        policy.json: which images may be used at all, and whose signatures they need
    proposed.py      What a change of objects about registries would do, for plans
    requirements.py  What a ClusterImagePolicy or an ImagePolicy requires of an image, as policy.json writes it
    scopes.py        Scopes: what an entry about registries is about, and which scopes lie inside which
    settings.py      Everything that is said about registries, judged and merged

From objects to files: `objects` reads, `mirrors` and `requirements` judge, `settings` puts together what `conf`, `payload`,
`policy` and `attachments` make of it, `files` writes it for a runtime, `configs` for pools.
"""
