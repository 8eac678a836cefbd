"""What can be wrong with an input that is not a MachineConfig.

    MachineConfigError          base; never raised itself
    ├── BadMaxUnavailable       the pool's budget cannot be understood
    ├── BadPolicy               a RolloutPolicy or a disruption policy cannot be understood
    ├── BadSettings             a KubeletConfig or a ContainerRuntimeConfig asks for something that is not allowed
    └── BadPointer              what a new machine would boot with cannot be made

What is wrong with a MachineConfig itself is data (`Problem`), because all of it is told at once.
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class MachineConfigError(FastnessError):
    """A sentence, a stable code, and what to do."""

    code = "machine-config"


class BadMaxUnavailable(MachineConfigError):
    """`spec.maxUnavailable` is neither a number nor a percentage."""

    code = "bad-max-unavailable"


class BadPolicy(MachineConfigError):
    """A policy cannot be understood."""

    code = "bad-policy"


class BadSettings(MachineConfigError):
    """Settings of the kubelet or the runtime that are not allowed."""

    code = "bad-settings"


class BadPointer(MachineConfigError):
    """A pointer config cannot be made."""

    code = "bad-pointer"
