"""`fastness agent firstboot`: the operating system becomes the one that the configuration asks for, before the kubelet starts."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fastness.agent.apply.first_boot import first_boot
from fastness.agent.apply.hosts import deployed_by
from fastness.agent.apply.ruled_os import ruled_choice
from fastness.agent.host.boot_loader import HostBootLoader
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.power import HostPower
from fastness.cli.errors import CliError, Exit
from fastness.cli.machine.agent import reported_agent_errors
from fastness.cli.output import tell
from fastness.kinds.machineconfiguration import names


@click.command("firstboot")
@click.option(
    "--config", default=names.ENCAPSULATED_FILE, show_default=True, help="What the operating system should be: a MachineConfig."
)  # fmt: skip
@click.option(
    "--os", "system", type=click.Choice(["auto", "prefer-bootc", "bootc", "rpm-ostree", "ostree", "none"]), default="auto",
    show_default=True,
    help="What deploys the operating system of this machine; auto asks bootc and rpm-ostree, none is a package host.",
)  # fmt: skip
@click.option("--ostree-name", default="default", show_default=True, help="Name of the ostree deployments.")
def firstboot(config: str, system: str, ostree_name: str) -> None:
    """Make the operating system what the configuration asks for, once; reboots where it is another."""
    if os.geteuid() != 0:
        raise CliError("the agent must run as root to change this machine", "Run it as root.", Exit.MISSING)
    with reported_agent_errors():
        root = RootedFiles(Path("/"))
        chosen = ruled_choice(system, "")
        tell(f"operating system by {chosen.driver}: {chosen.why}")
        deployer = deployed_by(chosen.driver, root, ostree_name)
        power = HostPower(finalizer=lambda: deployer.finalizer)
        lacking = first_boot(root, deployer, power, config, boot_loader=HostBootLoader())
    tell(
        f"this machine reboots: {'; '.join(lacking)}" if lacking else "this machine is what its configuration asks for"
    )
