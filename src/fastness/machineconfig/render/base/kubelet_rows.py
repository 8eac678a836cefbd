"""The rows of `01-<role>-kubelet`: files of the kubelet, its unit and what runs before it."""

from __future__ import annotations

from typing import Final

from fastness.machineconfig.render.base import kubelet
from fastness.machineconfig.render.base.host import script
from fastness.machineconfig.render.base.rows import ATTESTED, KUBERNETES, OPENSHIFT, PROXY, Row, When
from fastness.machineconfig.render.base.runtime import PROXY_ENVIRONMENT

_SIZING_SCRIPT: Final = "/usr/local/sbin/dynamic-system-reserved-calc.sh"
_STATES: Final = " ".join(f"/var/lib/kubelet/{name}_manager_state" for name in ("cpu", "memory", "dra"))
_SIZE: Final = f"""\
[Unit]
Description=Reserve for the system by the size of this machine
Before=kubelet-dependencies.target
After=local-fs.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={_SIZING_SCRIPT}

[Install]
RequiredBy=kubelet-dependencies.target
"""
_CLEAN: Final = f"""\
[Unit]
Description=Forget which processors and memory the pods of the last boot had
Before=kubelet.service
After=local-fs.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/rm -f {_STATES}

[Install]
WantedBy=multi-user.target
"""


def _on_platform(name: str) -> When:
    return When(f"on {name}", lambda inputs: inputs.platform == name)


ROWS: Final = (
    Row(kubelet.CONFIG_FILE, "the kubelet's settings: whom it believes, where the cluster's DNS is, control groups as the runtime"
        " has them, limits of a node; a KubeletConfig writes the whole file anew from the same",
        lambda inputs: kubelet.settings_text(kubelet.kubelet_settings(inputs))),
    Row(kubelet.BOOTSTRAP, "how the kubelet asks for its first certificate: with the token that the agent gets for a proof;"
        " elsewhere this file is made for each machine when its configuration is served", kubelet.bootstrap_kubeconfig, ATTESTED,
        mode=0o600),
    Row(f"{kubelet.VOLUME_PLUGINS}/.dummy", "makes the directory in which the kubelet looks for volume plug-ins", mode=0o755),
    Row("/etc/kubernetes/cloud.conf", "kubelet and credential providers read the platform's settings there",
        lambda inputs: inputs.cloud_conf, OPENSHIFT),
    *(Row(f"{kubelet.CREDENTIAL_PROVIDERS}/{program}.yaml", "images of the platform's own registry are pulled with the machine's"
          " identity", kubelet.credential_provider, OPENSHIFT & _on_platform(platform))
      for platform, (program, _, _) in kubelet.CREDENTIALS.items()),
    Row(kubelet.LOG_FILE, "the level of the kubelet's log; a KubeletConfig with logLevel writes this file anew",
        '[Service]\nEnvironment="KUBELET_LOG_LEVEL=2"\n'),
    Row(kubelet.SIZING_FILE, "whether the system's reserve follows from the machine's size, and what it is otherwise; pods that"
        " take everything would starve the kubelet", kubelet.sizing),
    Row(_SIZING_SCRIPT, "counts what the system of a machine of this size needs for itself",
        lambda _: script("auto-node-size.sh"), mode=0o755),
    Row("kubelet-auto-node-size.service", f"runs it at each boot, as memory may be added, and writes it to {kubelet.DROPINS}",
        _SIZE, enabled=True),
    Row("kubelet-cleanup.service", "a kubelet with other settings than those of these files does not start", _CLEAN,
        enabled=True),
    Row("kubelet.service", "starts the kubelet when runtime, network and name are there, with the flags of the distribution",
        kubelet.kubelet_unit, enabled=True),
    Row("kubelet.service/10-kubeadm.conf", "hides the drop-in of that name in kubeadm's package, which would replace the command",
        "[Service]\n# The command of kubelet.service holds.\n", KUBERNETES),
    Row("kubelet.service/10-mco-default-env.conf", "credentials for images are fetched through the proxy", PROXY_ENVIRONMENT,
        PROXY),
)  # fmt: skip
