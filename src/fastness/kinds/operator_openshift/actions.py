"""Actions after a change on a node: what has to happen before the change counts as applied.

An action is a union: `Reload` and `Restart` name a service, the others stand alone. In a list of actions, `Reboot` and `None`
exclude everything else. The status knows one more, `Special`, for changes whose action depends on their content.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastness.kinds import predicates
from fastness.kinds import schema as s

ACTIONS = ("Reboot", "Drain", "Reload", "Restart", "DaemonReload", "None")
LONGEST_UNIT = 255


def _unit(description: str) -> s.Fragment:
    return s.with_rules(s.string(description, maxLength=LONGEST_UNIT), *predicates.UNIT_NAME)


def _service(verb: str) -> s.Fragment:
    name = _unit(f"The service to {verb}, with its suffix.")
    return s.obj({"serviceName": name}, f"What to {verb}.", required=("serviceName",))


def _union(name: str, value: str) -> s.Fragment:
    return predicates.member_iff(
        name, "type", value, f"{name} is required when type is {value}, and forbidden otherwise"
    )


def _action(types: Sequence[str]) -> s.Fragment:
    return s.with_rules(
        s.obj(
            {
                "type": s.enum(*types, description="What happens."),
                "reload": _service("reload"),
                "restart": _service("restart"),
            },
            required=("type",),
        ),
        _union("reload", "Reload"),
        _union("restart", "Restart"),
    )


def actions(*, status: bool = False) -> s.Fragment:
    """A list of actions, in the order in which they run."""
    types = (*ACTIONS, "Special") if status else ACTIONS
    return s.with_rules(
        s.array(
            _action(types),
            "What happens, in this order.",
            maxItems=10,
            **s.ATOMIC,
        ),
        *(
            s.rule(
                f"!self.exists(action, action.type == '{alone}') || self.size() == 1",
                f"{alone} action can only be specified standalone, as it will override any other actions",
            )
            for alone in ("Reboot", "None")
        ),
    )


def policies(description: str, *, status: bool = False) -> s.Fragment:
    """Which change needs which actions."""
    files = s.obj(
        {"path": s.string("File that changed.", minLength=1, maxLength=4096), "actions": actions(status=status)},
        required=("path", "actions"),
    )
    units = s.obj(
        {
            "name": _unit("Unit that changed."),
            "actions": actions(status=status),
        },
        required=("name", "actions"),
    )
    return s.obj(
        {
            # A status also carries the cluster's own policies, which come on top of the user's fifty.
            "files": s.list_map(files, ("path",), "Policies for files.", maxItems=100 if status else 50),
            "units": s.list_map(units, ("name",), "Policies for units.", maxItems=100 if status else 50),
            "sshkey": s.obj({"actions": actions(status=status)}, "Policy for SSH keys.", required=("actions",)),
        },
        description,
    )
