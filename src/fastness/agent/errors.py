"""Why an agent could not bring its machine where it should be.

    AgentError              code, hint
    ├── BadConfig           the config cannot be carried out on this machine
    ├── Irreconcilable      only a new installation can get there from here
    ├── DriftFound          the disk is not what the current config says
    ├── NoBaseImage         the config names no image, and nobody knows what the machine booted before one did
    ├── BootFailed          the machine was rebooted into a system and runs another
    ├── KubeletDown         the kubelet does not run with the config that the machine came to
    ├── DrainTimeout        the pods did not leave in time
    ├── PinsRefused         pinned images cannot be had, or not be kept
    ├── Superseded          another config is desired now: not a failure, the sync begins again
    └── SetAside            the journal of an update was put away; the machine goes on from its disk as it is
        ├── DamagedJournal  because it cannot be read
        └── IncompleteUndo  because not all of it can be undone

The message ends up in the node's `reason` annotation, so it names the config and the path.
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class AgentError(FastnessError):
    """The machine is not where it should be."""

    code = "agent"
    hint = "Correct or delete the MachineConfig that the message names; the agent tries again by itself."


class BadConfig(AgentError):
    """The config cannot be carried out on this machine."""

    code = "bad-config"


class Irreconcilable(AgentError):
    """Only a new installation can get there from here."""

    code = "irreconcilable"
    hint = "Take the change back, or install new machines with it."


class DriftFound(AgentError):
    """The disk is not what the current config says."""

    code = "drift"
    hint = "Restore the files, or set the annotation fastness.dev/drift-policy=repair on the node."


class NoBaseImage(AgentError):
    """The config names no image, and nobody knows what the machine booted before one did."""

    code = "no-base-image"
    hint = (
        "Name the image in osImageURL of a MachineConfig or in baseOSContainerImage of the ControllerConfig, or write it to "
        "/etc/machine-config-daemon/baseimage on the machine."
    )


class BootFailed(AgentError):
    """The machine was rebooted into a system and runs another; it is not rebooted into it again."""

    code = "boot-failed"
    hint = (
        "Correct or delete the MachineConfig with the image; create /run/machine-config-daemon-force on the machine to let it "
        "try the same once more."
    )


class KubeletDown(AgentError):
    """The kubelet does not run with the config that the machine came to."""

    code = "kubelet-down"
    hint = (
        "journalctl -u kubelet on the machine says why. A RolloutPolicy with tryFor takes such a change back by itself."
    )


class DrainTimeout(AgentError):
    """The pods did not leave, or the node was not put back, in time."""

    code = "drain-timeout"
    hint = "See which PodDisruptionBudget blocks: kubectl get pdb -A."


class PinsRefused(AgentError):
    """Pinned images cannot be had, or not be kept."""

    code = "pins"
    hint = "See which image or which set the message names; the agent tries again by itself."


class Superseded(AgentError):
    """Another config is desired now."""

    code = "superseded"


class SetAside(AgentError):
    """The journal of an update was put away; the machine goes on from its disk as it is."""

    code = "set-aside"
    hint = (
        "The reason and what was kept are in set-aside, in the agent's state directory. What differs from the config is told as "
        "drift: restore those files, or set the annotation fastness.dev/drift-policy=repair on the node."
    )


class DamagedJournal(SetAside):
    """The journal cannot be read."""

    code = "damaged-journal"


class IncompleteUndo(SetAside):
    """Not all of an update can be undone."""

    code = "incomplete-undo"
