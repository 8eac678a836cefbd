"""The operating system of a machine on which two programs could deploy it: which one does follows a rule of the cluster.

A node is told the rule in an annotation (`fastness.dev/os-driver-rule`). It takes effect with the next look of the agent, without
a reboot: bootc and rpm-ostree read the same deployments, so the next change is simply made by the other one. What somebody named
on the command line of the agent stays.

Where the cluster has bootc alone, a machine that only rpm-ostree can deploy keeps its image and what is layered on it: another
image, kernel or package is refused, with the reason. Going back to what runs never is.
"""

from __future__ import annotations

from collections.abc import Callable

from fastness.agent.apply.hosts import Deployed
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.image_host import AUTO, PREFER_BOOTC, Choice, bootc_alone, detect
from fastness.agent.host.states import NOTHING, Deployment
from fastness.formats.image_reference import same_image
from fastness.kinds.machineconfiguration.names import OsDriverRule

_HINT = (
    "Bake the packages into the image of the pool and remove them from the machine (`rpm-ostree uninstall`), install the machine "
    "anew with bootc, or set an earlier stage."
)


def ruled_choice(
    option: str, rule: str, look: Callable[[bool], Choice] = lambda preferred: detect(prefer_bootc=preferred)
) -> Choice:
    """What deploys this machine: what the command line names, else what the host is made for under the cluster's rule."""
    if option not in (AUTO, PREFER_BOOTC):
        return Choice(option, "--os says so")
    choice = look(option == PREFER_BOOTC or rule in (OsDriverRule.BOOTC_FIRST, OsDriverRule.BOOTC_ALONE))
    return bootc_alone(choice) if rule == OsDriverRule.BOOTC_ALONE else choice


class RuledOs:
    """Hands everything on to the driver that the rule makes."""

    def __init__(self, choose: Callable[[str], Choice], make: Callable[[str], Deployed]) -> None:
        """`choose` answers which driver a rule means on this machine, `make` is the driver of a name."""
        self._choose = choose
        self._make = make
        self._rule = ""
        self.choice = choose("")
        self._driver = make(self.choice.driver)

    def follow(self, rule: str) -> str:
        """Let a rule hold from now on; the driver and why, as the node says it."""
        if rule != self._rule:
            choice = self._choose(rule)
            if choice.driver != self.choice.driver:
                self._driver = self._make(choice.driver)
            self._rule, self.choice = rule, choice
        return str(self.choice)

    @property
    def finalizer(self) -> str:
        """The unit that makes a staged deployment bootable."""
        return self._driver.finalizer

    @property
    def brings_arguments(self) -> bool:
        """Whether the driver takes kernel arguments from the image."""
        return self._driver.brings_arguments

    @property
    def owns_usr(self) -> bool:
        """Whether /usr is the image's."""
        return self._driver.owns_usr

    @property
    def brings_usr(self) -> bool:
        """Whether an image brings what is below /usr."""
        return self._driver.brings_usr

    def booted(self) -> Deployment:
        """What runs now."""
        return self._driver.booted()

    def staged(self) -> Deployment | None:
        """What the next boot will run, if it differs."""
        return self._driver.staged()

    def stage(self, deployment: Deployment, old: Deployment = NOTHING, extensions_image: str = "") -> None:
        """Let the next boot run a deployment; raises ImageFailure."""
        if self.choice.refusal and self._changes(deployment):
            raise ImageFailure(f"{self.choice.why}; {self.choice.refusal}", _HINT)
        self._driver.stage(deployment, old, extensions_image)

    def discard(self) -> None:
        """Drop what is staged."""
        self._driver.discard()

    def on_trial(self) -> bool:
        """Whether what runs was booted once, to see."""
        return self._driver.on_trial()

    def booted_well(self) -> None:
        """What runs is what should."""
        self._driver.booted_well()

    def last_boot_log(self) -> str:
        """What finalizing said at the last shutdown."""
        return self._driver.last_boot_log()

    def _changes(self, deployment: Deployment) -> bool:
        """Whether a deployment needs more than other kernel arguments."""
        runs = self._driver.booted()
        switched = bool(deployment.image) and not same_image(deployment.image, runs.image)
        return switched or (deployment.kernel, deployment.extensions) != (runs.kernel, runs.extensions)
