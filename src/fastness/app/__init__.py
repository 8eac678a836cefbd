"""The composition root of `up` and `serve`: who is built with whom, and what each part may do.

accounts.py            Accounts of the doors and the controllers on Kubernetes: what each may do, and nothing else
attestation_doors.py   The doors that machines prove themselves at: enrolment and the key broker, with everything behind them
audit.py               Lines in the audit log about what is done beside the API
backups.py             Backups of an embedded control plane: one file with all objects and the whole record
control_plane.py       The embedded control plane: the API, its loops, and what tells others where they are
controller_account.py  The account of the controllers: what their loops declare, by name where Kubernetes can
controllers.py         The controllers of the product: the same on the embedded API and on any Kubernetes
doors.py               The doors that `fastness serve` can run, each on its own and any number
lacking.py             What somebody must give before a part of the control plane can be started; each a sentence and a hint
machines.py            The virtual machines of `fastness up --machines N`
memory.py              The garbage collector of programs that stay
node_lookups.py        What the embedded API must know of nodes and does not decide itself
page.py                The page of an embedded control plane: put together from the parts of its API
product.py             The rules, questions and records of the product, for whoever opens the embedded one
role_accounts.py       What an account of a role on Kubernetes is: its own Secrets, what it reads, what it writes, and where
vault_rotation.py      A new vault key for a state directory: everything is sealed and tagged anew, then the old key goes
vendor_documents.py    Vendors' documents for the doors that this command runs
vms.py                 The real machines of `fastness up --vms N`
"""
