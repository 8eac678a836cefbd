"""The agent's own units: the same texts that `fastness machine image` puts into images (`deploy/systemd`).

Where the image is measured it carries them, and the configuration only starts them and says where this distribution's kubelet
has its kubeconfig: a unit in /etc would win over the measured one. Elsewhere the units come with the configuration; the program
is part of the image or is not there, and then none of them starts.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.base.kubelet import KUBECONFIG
from fastness.machineconfig.render.base.node_inputs import NodeInputs
from fastness.machineconfig.render.base.rows import CONFIDENTIAL, EVERYWHERE, NOT_CONFIDENTIAL, Row, When
from fastness.runtime.deployed import deployed_unit

PROGRAM: Final = "/usr/lib/fastness/agent/bin/fastness-agent"
ATTESTING: Final = When("pools whose machines can attest", lambda inputs: inputs.trust is not TrustModel.NONE)
SERVED: Final = When("with a config server", lambda inputs: bool(inputs.config_server))
_KUBECONFIG: Final = f"[Service]\nEnvironment=KUBECONFIG={KUBECONFIG}\n"
_UNITS: Final = {
    "fastness-firstboot.service": "a machine becomes the image that its configuration asks for before its kubelet starts",
    "fastness-agent.service": "brings what changes later to the machine, and reports what differs",
    "fastness-revert.service": "completes the way back from an image that was built for the pool",
}


def _text(name: str, _: NodeInputs) -> str:
    return deployed_unit(name)


def config_server(inputs: NodeInputs) -> str:
    """The agent of a machine that never attests: its configurations come from the config server."""
    return f"""\
[Unit]
# No identity is waited for: this machine has none.
ConditionPathExists=
ConditionPathExists={PROGRAM}
ConditionPathExists=/usr/lib/fastness/trust.json

[Service]
Environment="CONFIG_SOURCE=--config-server {inputs.config_server}"
"""


ROWS: Final = (
    *(Row(name, reason, partial(_text, name), NOT_CONFIDENTIAL, enabled=True) for name, reason in _UNITS.items()),
    *(Row(name, f"{reason}; the measured image brings the unit", "", CONFIDENTIAL, enabled=True)
      for name, reason in _UNITS.items()),
    Row(names.BOOT_LOADER_FILE, "with a new image the agent brings that image's boot loader too, before firmware or a kernel"
        " refuses the old one; in confidential pools the loader is part of what a machine proves, and comes with the image alone",
        names.UPDATE_BOOT_LOADER, NOT_CONFIDENTIAL),
    Row("fastness-identity.service", "keeps the key that the machine enrolled with; the image brings the unit", "", ATTESTING,
        enabled=True),
    Row("fastness-attest.service", "proves the machine again and renews its node's certificates; the image brings the unit", "",
        ATTESTING, enabled=True),
    *(Row(f"{name}/50-kubeconfig.conf", "where the kubelet of this configuration has its kubeconfig; the unit names kubeadm's",
          _KUBECONFIG, when)
      for name, when in (("fastness-agent.service", EVERYWHERE), ("fastness-attest.service", ATTESTING))),
    Row("fastness-agent.service/60-config-server.conf", "a machine that never attests fetches later configurations with its"
        " node's certificate; without an annotation that names the server nothing brings them", config_server,
        NOT_CONFIDENTIAL & SERVED),
)  # fmt: skip
