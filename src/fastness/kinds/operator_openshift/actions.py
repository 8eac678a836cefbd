"""Actions after a change on a node: what has to happen before the change counts as applied.

An action is a union: `Reload` and `Restart` name a service, the others stand alone. In a list of actions, `Reboot` and `None`
exclude everything else. The status knows one more, `Special`, for changes whose action depends on their content.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastness.kinds import schema as s

ACTIONS = ("Reboot", "Drain", "Reload", "Restart", "DaemonReload", "None")
_SUFFIXES = "service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope"
SERVICE_NAME = rf"^[a-zA-Z0-9:._\-]+\.({_SUFFIXES})$"


def _service(verb: str) -> s.Fragment:
    name = s.string(f"The service to {verb}, with its suffix.", pattern=SERVICE_NAME, minLength=1, maxLength=255)
    return s.obj({"serviceName": name}, f"What to {verb}.", required=("serviceName",))


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
        s.rule("has(self.reload) == (self.type == 'Reload')", "reload is required for type Reload, and only there"),
        s.rule("has(self.restart) == (self.type == 'Restart')", "restart is required for type Restart, and only there"),
    )


def actions(*, status: bool = False) -> s.Fragment:
    """A list of actions, in the order in which they run."""
    types = (*ACTIONS, "Special") if status else ACTIONS
    return s.with_rules(
        s.array(
            _action(types),
            "What happens, in this order.",
            minItems=1,
            maxItems=10,
            **s.ATOMIC,
        ),
        *(
            s.rule(f"!self.exists(a, a.type == '{alone}') || self.size() == 1", f"{alone} must be the only action")
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
            "name": s.string("Unit that changed.", pattern=SERVICE_NAME, minLength=1, maxLength=255),
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
