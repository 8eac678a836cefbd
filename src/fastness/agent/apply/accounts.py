"""Users and groups of a machine, read from the text of its own account files.

Names in a config mean the accounts of the machine below its root, not those of the process that runs the agent, so the files are
read there. A password hash is one field of one line of the shadow file; the new text keeps every other byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fastness.agent.errors import BadConfig
from fastness.agent.host.states import File, State

PASSWD, GROUP, SHADOW = "/etc/passwd", "/etc/group", "/etc/shadow"
DEFAULT_HOME = "/home/core"
LOCKED = "*"


@dataclass(frozen=True, slots=True)
class Account:
    """One line of the passwd file."""

    uid: int
    gid: int
    home: str


@dataclass(frozen=True, slots=True)
class Accounts:
    """The accounts of a machine."""

    users: dict[str, Account] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)

    def uid(self, name: str) -> int:
        """The number of a user; raises BadConfig."""
        if name == "root":
            return 0
        if name not in self.users:
            raise BadConfig(f"there is no user {name!r} on this machine")
        return self.users[name].uid

    def gid(self, name: str) -> int:
        """The number of a group; raises BadConfig."""
        if name == "root":
            return 0
        if name not in self.groups:
            raise BadConfig(f"there is no group {name!r} on this machine")
        return self.groups[name]

    def home(self, name: str) -> str:
        """Where a user lives."""
        user = self.users.get(name)
        return user.home if user and user.home.startswith("/") and user.home != "/" else DEFAULT_HOME


def read_accounts(passwd: State, group: State) -> Accounts:
    """The accounts in the two files; lines that make no sense are skipped, as the system does."""
    users: dict[str, Account] = {}
    for name, fields in _lines(passwd, 7):
        if fields[2].isdigit() and fields[3].isdigit():
            users[name] = Account(int(fields[2]), int(fields[3]), fields[5])
    groups = {name: int(fields[2]) for name, fields in _lines(group, 4) if fields[2].isdigit()}
    return Accounts(users, groups)


def password_hash(shadow: State, user: str) -> str | None:
    """The hash of a user; None without a line for it."""
    return next((fields[1] for name, fields in _lines(shadow, 2) if name == user), None)


def with_password_hash(shadow: File, user: str, value: str) -> File:
    """The shadow file with another hash for one user; raises BadConfig when the user is not in it."""
    # Bytes that are no UTF-8 come back as they were: a file of accounts that lost one is a machine that nobody can enter.
    lines = shadow.content.decode(errors="surrogateescape").split("\n")
    for number, line in enumerate(lines):
        fields = line.split(":")
        if fields[0] == user and len(fields) > 1:
            fields[1] = value
            lines[number] = ":".join(fields)
            content = "\n".join(lines).encode(errors="surrogateescape")
            return File(content, shadow.mode, shadow.uid, shadow.gid)
    raise BadConfig(f"there is no user {user!r} in {SHADOW}")


def _lines(state: State, least: int) -> list[tuple[str, list[str]]]:
    if not isinstance(state, File):
        return []
    split = (line.split(":") for line in state.content.decode(errors="surrogateescape").splitlines())
    return [(fields[0], fields) for fields in split if len(fields) >= least and fields[0]]
