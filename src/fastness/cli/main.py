"""The command and the names of its verbs.

A verb is a name, a help line and the place of its implementation; the module is imported when the verb runs (`lazy`). Adding a
verb is one line here and one function there.
"""

from __future__ import annotations

import difflib
import sys
import traceback
from collections.abc import Mapping
from types import ModuleType
from typing import Final, cast

import click

from fastness import __version__
from fastness.cli.errors import Exit
from fastness.cli.lazy import LazyGroup, Verb
from fastness.runtime.memory import collect_rarely

# The command of httpx, which loads rich and pygments wherever they are installed: 70 modules that nobody here uses.
HTTPX_COMMAND: Final = "httpx._main"
VERBS: Mapping[str, Verb] = {
    "up": Verb("fastness.cli.run.up:up", "Run a whole control plane on this machine."),
    "serve": Verb("fastness.cli.run.serve:serve", "Run roles of the control plane against a Kubernetes API server."),
    "agent": Verb("fastness.cli.machine.agent:agent", "Run on a machine and keep it where its config says."),
    "kubeconfig": Verb(
        "fastness.cli.run.state_directory:kubeconfig", "Print the kubeconfig of a running control plane."
    ),
    "crds": Verb("fastness.cli.run.crds:crds", "Print the CustomResourceDefinitions for a Kubernetes cluster."),
    "backup": Verb(
        "fastness.cli.run.state:backup", "Write a consistent copy of the state, also while it is in use; verify one."
    ),
    "restore": Verb("fastness.cli.run.state:restore", "Make a state directory from a backup."),
    "state": Verb("fastness.cli.run.state_objects:state", "Look after a state directory that no control plane uses."),
    "validate": Verb(
        "fastness.cli.config.validate:validate", "Say everything that is wrong with MachineConfigs in files."
    ),
    "render": Verb(
        "fastness.cli.config.validate:render", "Print the config that a pool gets from MachineConfigs in files."
    ),
    "blame": Verb("fastness.cli.config.plan:blame", "Say which MachineConfig a file, unit or setting came from."),
    "plan": Verb("fastness.cli.config.plan:plan", "Say what a change would do to pools and nodes, before it happens."),
    "ticket": Verb("fastness.cli.trust.tickets:ticket", "Make join tickets for machines."),
    "userdata": Verb(
        "fastness.cli.trust.tickets:userdata", "Print the pointer config of a pool, for machines made by hand."
    ),
    "machine": Verb("fastness.cli.trust.machine:machine", "List, approve and quarantine the machines that enrolled."),
    "distrust": Verb(
        "fastness.cli.trust.distrust:distrust", "Stop trusting machines, images, keys or chips; see what that hits."
    ),
    "break-glass": Verb(
        "fastness.cli.trust.breakglass:breakglass", "Override attestation for a pool, if two approvers sign."
    ),
    "attest": Verb("fastness.cli.trust.attest:attest", "Judge evidence of machines from files, without a cluster."),
    "measure": Verb(
        "fastness.cli.images.measure:measure", "Compute what a machine will measure when it boots an image."
    ),
    "audit": Verb("fastness.cli.trust.audit:audit", "Read the record of what was decided, and prove it."),
    "vault": Verb("fastness.cli.run.vault:vault", "Give a state directory a new vault key."),
    "keys": Verb("fastness.cli.run.keys:keys", "List the keys of a cluster, and rotate all of them in an emergency."),
    "witness": Verb(
        "fastness.cli.run.witness:witness", "Cosign the records of other clusters, so that none can be rewritten."
    ),
    "image": Verb("fastness.cli.images.images:image", "Approve what machines may boot, or take it back."),
    "policy": Verb("fastness.cli.trust.policies:policy", "Try policies that judge evidence and resources."),
    "broker": Verb("fastness.cli.trust.resources:broker", "Mint credentials for administrators of the key broker."),
    "resource": Verb(
        "fastness.cli.trust.resources:resource", "Set, list and delete secrets that attested machines read."
    ),
    "secret": Verb("fastness.cli.workloads.sealing:secret", "Seal secrets that open only inside an attested guest."),
    "features": Verb(
        "fastness.cli.workloads.features:features", "Say what a machine can do, and what rules make of it."
    ),
    "initdata": Verb(
        "fastness.cli.workloads.initdata:initdata", "Build, check and apply what the guest of a pod starts with."
    ),
    "demo": Verb(
        "fastness.cli.run.demo:demo", "Tell the story of a confidential cluster in two minutes, and leave it running."
    ),
    "sim": Verb(
        "fastness.cli.run.sim:sim", "Add, remove and break virtual machines of a running `fastness up`; undo it."
    ),
    "support": Verb("fastness.cli.support.support:support", "Collect what others need to help, without secrets."),
    "dcap": Verb("fastness.cli.workloads.dcap:dcap", "Print Intel's caching and quoting services for TDX guests."),
    "enable": Verb("fastness.cli.workloads.enable:enable", "Make a cluster run confidential containers, in one step."),
    "doctor": Verb("fastness.cli.support.doctor:doctor", "Say what is installed, what is missing and what to do."),
    "selftest": Verb(
        "fastness.cli.support.selftest:selftest",
        "Prove that the doors of a cluster let in whom they should, and nobody else.",
    ),
    "version": Verb("fastness.cli.version:version", "Print the version."),
}


class Command(LazyGroup):
    """The command `fastness`."""

    heading = "Verbs"

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; an interrupt ends with its own code, also while the verb is being imported."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(Exit.INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a verb, or name the closest one."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], VERBS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " See `fastness --help`."
            raise click.UsageError(f"there is no verb {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Command,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "FASTNESS"},
    epilog="Exit codes: 0 done, 1 the answer is no, 2 wrong use, 3 something is missing, 4 the cluster said no, 70 a defect, "
    '130 interrupted. Completion: eval "$(_FASTNESS_COMPLETE=bash_source fastness)", likewise zsh_source and fish_source.',
)
@click.version_option(__version__, "--version", prog_name="fastness", message="%(prog)s %(version)s")
def cli() -> None:
    """Fastness: a machine gets configuration, keys and a place in the cluster only after it has proved what it booted."""


def _leave_out(module: str) -> None:
    """Have the import of a module fail, for whoever can do without it."""
    sys.modules.setdefault(module, cast("ModuleType", None))


def main() -> None:
    """Entry point of the command; what nobody expected is a defect: its traceback is shown and the exit code says so."""
    collect_rarely()
    _leave_out(HTTPX_COMMAND)
    try:
        cli.main(prog_name="fastness", standalone_mode=True)
    except Exception:  # noqa: BLE001  # the outermost supervisor: nothing is above it
        traceback.print_exc()
        sys.exit(Exit.DEFECT)


if __name__ == "__main__":
    main()
