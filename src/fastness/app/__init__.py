"""The composition root of `up` and `serve`: who is built with whom, and what each part may do.

accounts.py            Accounts of the doors and the controllers on Kubernetes: what each may do, and nothing else
audit.py               Lines in the audit log about what is done beside the API
backup_file.py         What the backup of a Kubernetes says about itself, and which files are refused
backups.py             Backups of an embedded control plane: one file with all objects and the whole record
chart.py               The parts of the Helm chart that follow from the code
control_plane.py       The one composition root: the parts of a control plane over a cluster, for the time of a block
controller_account.py  The account of the controllers: what their loops declare, by name where Kubernetes can
controllers.py         The controllers of the product: the same on the embedded API and on any Kubernetes
doors.py               Opens the doors of a process, each with what stands behind it
embedded.py            `fastness up`: an API server of its own, all parts over it, and machines to try it with
keeping/               Keeping what a Kubernetes holds: its backup, its way back, and new keys for all roles
machines.py            The virtual machines of `fastness up --machines N`
node_lookups.py        What the embedded API must know of nodes and does not decide itself
other_operators.py     Families of loops that do not start where another operator does their work
parts.py               The parts of a control plane, by the names that users know them by
product.py             The rules, questions and records of the product, for whoever opens the embedded one
replica.py             `fastness serve`: one of any number of processes that run parts against a Kubernetes API server
role_accounts.py       What an account of a role on Kubernetes is: its own Secrets, what it reads, what it writes, and where
settings.py            What the parts of a control plane are told
state_format.py        Which version wrote what a cluster holds: an older one does not start on it
vault_rotation.py      A new vault key for a state directory: everything is sealed and tagged anew, then the old key goes
vms.py                 The real machines of `fastness up --vms N`
"""
