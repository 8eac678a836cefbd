"""The state machine of a KataConfig: what is there in, what is to be done out.

    created ─ checks ─ Installing ─ every chosen node installed ─ classes, done ─┬─ nodes join, leave, change ─ Updating ─ done
                 │                                                               └─ deleted ─ pods? ─ Uninstalling ─ gone
                 └─ refused: nothing is made, the reason is told, looked at again

    operator removed ─ nothing at all is done, and that is told ─ it is back ─ goes on where it was

* Level-triggered: where the machine is follows from the objects alone, so that any step can be lost or done twice.
* A node that is not chosen any more is left alone while pods use the runtime on it, and where only its labels vanished: nothing
  that a deletion would not do happens by itself. While labels are lost no class goes either.
* Classes appear when the last node is done, never earlier, and go first: a pod must not start where the runtime is about to go.
* A deletion waits for an installation that is under way. It does not wait for one that cannot end: a node that failed, or
  nodes that have not been ready for long.
* Both ways of installing share all of this; `machineconfig.py` and `daemonset.py` beside it bring nodes where they should be.
* Pods, nodes and objects that vanish meanwhile are simply not there at the next look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.kinds.kata import names
from fastness.kinds.kata.config import FINALIZER
from fastness.kinds.objects import condition, is_being_deleted, metadata, object_name
from fastness.workloads.kata import mode, objects, peer_pods, status
from fastness.workloads.kata.classes import ClassPlan, plan_classes
from fastness.workloads.kata.daemonset import DaemonSetInstaller
from fastness.workloads.kata.eligibility import (
    Against,
    NodeChoice,
    NodeRequirements,
    choose,
    has_role,
    is_converged,
    require_labels,
    requirements_of,
)
from fastness.workloads.kata.errors import Refused
from fastness.workloads.kata.inputs import Action, Ensure, Hold, Inputs, LetGo, Object, Plan, Ref, Remember, Remove
from fastness.workloads.kata.machineconfig import MachineConfigInstaller
from fastness.workloads.kata.mode import DeploymentMode
from fastness.workloads.kata.status import EMPTY, KataCondition, NodeLists, Status, is_ready

RETRY_PODS: Final = 15.0
RETRY_CLASS: Final = 10.0
STALLED: Final = timedelta(minutes=10)
NO_NODES: Final = "no worker node is selected"
NO_WORKER: Final = "it is no worker any more"
CLASS: Final = "RuntimeClass"
Installer = MachineConfigInstaller | DaemonSetInstaller


def needs_pods(inputs: Inputs) -> bool:
    """Whether the plan depends on which pods there are: asked only then, because there are many."""
    if inputs.config is None:
        return any(is_being_deleted(runtime_class) for runtime_class in _classes(inputs).values())
    if inputs.operator.against is not None:
        return False
    if is_being_deleted(inputs.config) or any(
        is_being_deleted(runtime_class) for runtime_class in _classes(inputs).values()
    ):
        return True
    if _loses_nodes(inputs, inputs.config):
        return True
    handlers = {spec.name: spec.handler for spec in _class_plan(inputs, inputs.config).classes}
    return any(handlers.get(name) != runtime_class.get("handler") for name, runtime_class in _classes(inputs).items())


def plan(inputs: Inputs) -> Plan:
    """What to do now, what to tell, and when to look again."""
    step = _step(inputs)
    memory = (Remember(inputs.operator.installed),) if inputs.operator.unrecorded else ()
    return replace(step, actions=(*memory, *step.actions))


def _step(inputs: Inputs) -> Plan:
    config = inputs.config
    if config is None:
        free = _freed(inputs)
        return Plan(tuple(free), again=RETRY_CLASS if _classes(inputs) and not free else None)
    if inputs.operator.against is not None:
        return Plan((), Status(inputs.operator.against, None, _stored_classes(config)))
    if not is_being_deleted(config):
        return _install(inputs, config)
    if FINALIZER not in (metadata(config).get("finalizers") or ()):
        return Plan()  # our part is done; others may still hold the object
    if _installs_first(inputs, config):
        return _install(inputs, config)
    return _uninstall(inputs, config)


def installer_of(inputs: Inputs, config: Object) -> tuple[Installer, NodeRequirements]:
    """How nodes are brought there, and what is asked of them; raises Refused."""
    used = mode.in_use(config) or mode.resolve(inputs.gates.deployment_mode, inputs.served)
    converged = is_converged(inputs.pools, inputs.nodes)
    by_configs = used is DeploymentMode.MACHINE_CONFIG
    installer: Installer = MachineConfigInstaller() if by_configs else DaemonSetInstaller()
    return installer, requirements_of(config, converged=converged)


def _choices(inputs: Inputs, requirements: NodeRequirements) -> list[NodeChoice]:
    """Every worker with the decision about it; those that pods need keep the runtime for now."""
    choices = choose(requirements, inputs.nodes, inputs.pools, inputs.cluster, inputs.machines)
    if requirements.converged:
        return choices
    workers = {choice.node for choice in choices}
    # A node that is no worker any more is no candidate, and leaves all the same.
    choices += [
        NodeChoice(name, Against.NOT_SELECTED, NO_WORKER) for name in _with_runtime(inputs) if name not in workers
    ]
    return [_unless_pods_use_it(inputs, choice) for choice in choices]


def _unless_pods_use_it(inputs: Inputs, choice: NodeChoice) -> NodeChoice:
    """The choice, unless it takes the runtime away from under pods, or nobody knows whether it does."""
    if choice.chosen or choice.node not in _with_runtime(inputs):
        return choice
    pod = inputs.pods.nodes.get(choice.node)
    if pod is None and inputs.pods.error is None:
        return choice
    why = f"{pod} runs in it" if pod else f"its pods cannot be listed ({inputs.pods.error})"
    message = f"is to lose the runtime ({choice.message}) and keeps it for now: {why}"
    return NodeChoice(choice.node, Against.PODS, message, "delete the pods that use it there", retained=True)


def _with_runtime(inputs: Inputs) -> tuple[str, ...]:
    return tuple(object_name(node).name for node in inputs.nodes if has_role(node))


def _loses_nodes(inputs: Inputs, config: Object) -> bool:
    """Whether a node that has the runtime is not chosen any more."""
    try:
        _, requirements = installer_of(inputs, config)
    except Refused:
        return False
    chosen = {choice.node for choice in _choices(inputs, requirements) if choice.chosen}
    return not requirements.converged and not chosen.issuperset(_with_runtime(inputs))


def _install(inputs: Inputs, config: Object) -> Plan:
    try:
        installer, requirements = installer_of(inputs, config)
        choices = _choices(inputs, requirements)
        begun = mode.in_use(config) is not None
        if not begun:
            _may_begin(inputs, config, requirements, choices)
        made = [*installer.objects(inputs, config, requirements), *peer_pods.gated(inputs)]
    except Refused as error:
        refusal = KataCondition(False, error.reason, error.sentence)
        return Plan((), Status(refusal, None, more=_more(inputs, config, (), None)), error.again)
    chosen = tuple(choice.node for choice in choices if choice.chosen)
    actions: list[Action] = [*([] if begun and _is_held(config) else [Hold(installer.mode)]), *_missing(inputs, made)]
    actions += installer.marks(inputs, requirements, chosen)
    # The manual's first status has a condition and no lists; scripts follow that order.
    lists = EMPTY if not status.was_written(config) else installer.lists(inputs, requirements, chosen)
    done = begun and status.was_written(config) and installer.is_done(inputs, requirements, chosen, lists)
    classes = _class_plan(inputs, config)
    # While labels are lost nobody can say which classes still fit, so none is taken away.
    lost = any(choice.against is Against.LABELS_LOST for choice in choices)
    actions += _afterwards(inputs, config, classes, requirements, keep=lost) if done else []
    report = Status(
        _installing(config, lists, done=done), lists, _reported_classes(inputs, classes, done=done),
        waiting=not done and not lists.node_count, more=_more(inputs, config, choices, classes),
    )  # fmt: skip
    again = RETRY_PODS if any(choice.against is Against.PODS for choice in choices) else None
    return Plan((*actions, *_freed(inputs)), report, RETRY_CLASS if _held_classes(inputs) else again)


def _afterwards(
    inputs: Inputs, config: Object, classes: ClassPlan, requirements: NodeRequirements, *, keep: bool
) -> list[Action]:
    """What is made when every node has the runtime: the adaptor of peer pods before its class, the console's dashboard."""
    return [
        *_missing(inputs, peer_pods.adaptor(inputs, requirements)),
        *([] if keep and _classes(inputs) else _class_actions(inputs, config, classes, requirements)),
        *(Remove(ref) for ref in peer_pods.surplus(inputs)),
        *objects.dashboard(inputs),
    ]


def _may_begin(inputs: Inputs, config: Object, requirements: NodeRequirements, choices: Sequence[NodeChoice]) -> None:
    """Whether an installation may begin; raises Refused."""
    with_peer_pods = peer_pods.are_enabled(config)
    if inputs.gates.confidential and not with_peer_pods:
        mode.require_release(inputs.version)
    require_labels(requirements, inputs.nodes, peer_pods=with_peer_pods)
    if any(choice.chosen for choice in choices):
        return
    refused = status.nodes_refused(choices)
    if refused is not None:
        raise Refused(refused.reason, refused.message, "")
    raise Refused("NoMatchingNodes", NO_NODES, "look at spec.kataConfigPoolSelector and at the labels of the nodes")


def _installing(config: Object, lists: NodeLists, *, done: bool) -> KataCondition:
    if lists.failures:
        return status.failed(lists)
    if done:
        return status.FINISHED
    return status.UPDATING if _ever_finished(config) else status.INSTALLING


def _ever_finished(config: Object) -> bool:
    progress = condition(config, status.IN_PROGRESS) or {}
    finished = progress.get("status") == "False" and not progress.get("reason")
    return finished or bool((config.get("status") or {}).get("runtimeClasses")) or progress.get("reason") == "Updating"


def _installs_first(inputs: Inputs, config: Object) -> bool:
    """Whether a deletion waits for the installation that is under way."""
    if mode.in_use(config) is None or status.reason_before(config) not in ("Installing", "Updating"):
        return False
    try:
        installer, requirements = installer_of(inputs, config)
        choices = _choices(inputs, requirements)
    except Refused:
        return False
    chosen = tuple(choice.node for choice in choices if choice.chosen)
    unfinished = installer.lists(inputs, requirements, chosen).unfinished
    if not chosen:
        return False
    left = [node for name in unfinished if (node := inputs.node(name)) is not None]
    return not left or not all(_stalled(node, inputs.now) for node in left)


def _stalled(node: Object, now: datetime) -> bool:
    """Whether a node has not been ready for so long that nobody waits for it any more."""
    if is_ready(node):
        return False
    entries = (node.get("status") or {}).get("conditions") or ()
    since = next((entry.get("lastTransitionTime") for entry in entries if entry.get("type") == "Ready"), None)
    try:
        return now - datetime.fromisoformat(str(since)) > STALLED
    except (ValueError, TypeError):
        return False


def _uninstall(inputs: Inputs, config: Object) -> Plan:
    reported = _stored_classes(config)
    if status.reason_before(config) != status.UNINSTALLING.reason:
        obstacle = status.unlisted(inputs.pods.error) if inputs.pods.error is not None else None
        obstacle = status.blocked(inputs.pods.first) if obstacle is None and inputs.pods.first else obstacle
        if obstacle is not None:
            return Plan((), Status(obstacle, None, reported, more={}), RETRY_PODS)
    try:
        installer, requirements = installer_of(inputs, config)
    except Refused:
        # A selector that nobody can read any more chooses nothing, which is what an uninstallation wants.
        installer, requirements = installer_of(inputs, {**config, "spec": {}})
    actions: list[Action] = [
        Remove(Ref(CLASS, name))
        for name, runtime_class in _classes(inputs).items()
        if not is_being_deleted(runtime_class)
    ]
    actions += _freed(inputs)
    actions += installer.leave(inputs, requirements)
    lists = installer.lists(inputs, requirements, ())
    report = Status(status.failed(lists) if lists.failures else status.UNINSTALLING, lists, (), more={})
    if lists.unfinished or not installer.is_gone(inputs) or _classes(inputs):
        return Plan(tuple(actions), report, RETRY_CLASS if _classes(inputs) else None)
    if status.reason_before(config) not in ("Uninstalling", "Failed"):
        return Plan(tuple(actions), report, 0.0)  # told once, even where there was nothing to remove
    remains = [*installer.remains(inputs), *peer_pods.remains()]
    actions += [*(Remove(ref) for ref in remains if ref in inputs.objects), *objects.without_dashboard(inputs)]
    return Plan((*actions, LetGo(Ref("KataConfig", object_name(config).name), FINALIZER)), report)


def _missing(inputs: Inputs, made: Sequence[Ensure]) -> list[Action]:
    """What of the objects is not there, or is not what it should be."""
    pairs = [(ensure, inputs.objects.get(ensure.ref)) for ensure in made]
    return [
        ensure
        for ensure, present in pairs
        if present is None or (not is_being_deleted(present) and ensure.differs(present))
    ]


def _class_plan(inputs: Inputs, config: Object) -> ClassPlan:
    try:
        _, requirements = installer_of(inputs, config)
    except Refused:
        return ClassPlan()
    return plan_classes(inputs.gates, requirements, inputs.nodes, peer_pods=peer_pods.are_enabled(config))


def _classes(inputs: Inputs) -> dict[str, Object]:
    """The classes that are ours, by name: those with our finalizer."""
    return {
        ref.name: obj
        for ref, obj in sorted(inputs.objects.items())
        if ref.kind == CLASS and names.CLASS_FINALIZER in (metadata(obj).get("finalizers") or ())
    }


def _class_actions(inputs: Inputs, config: Object, classes: ClassPlan, requirements: NodeRequirements) -> list[Action]:
    ensures = [objects.runtime_class(config, spec, requirements) for spec in classes.classes]
    present = _classes(inputs)
    # A handler cannot be changed: the class goes, when no pod uses it, and comes again.
    changed = [
        ensure.ref
        for ensure in ensures
        if ensure.ref.name in present and present[ensure.ref.name]["handler"] != ensure.obj["handler"]
    ]
    surplus = [Ref(CLASS, name) for name in present if name not in {spec.name for spec in classes.classes}]
    gone = [
        Remove(ref)
        for ref in (*changed, *surplus)
        if not is_being_deleted(present[ref.name]) and inputs.pods.error is None and ref.name not in inputs.pods.classes
    ]
    return [*gone, *_missing(inputs, [ensure for ensure in ensures if ensure.ref not in changed])]


def _reported_classes(inputs: Inputs, classes: ClassPlan, *, done: bool) -> tuple[str, ...]:
    """The classes that the status names: those that are there or are made now."""
    here = {name for name, runtime_class in _classes(inputs).items() if not is_being_deleted(runtime_class)}
    return tuple(sorted(here | ({spec.name for spec in classes.classes} if done else set())))


def _stored_classes(config: Object) -> tuple[str, ...]:
    """The classes that the status names as it stands."""
    return tuple((config.get("status") or {}).get("runtimeClasses") or ())


def _held_classes(inputs: Inputs) -> list[str]:
    return [name for name, runtime_class in _classes(inputs).items() if is_being_deleted(runtime_class)]


def _freed(inputs: Inputs) -> list[Action]:
    """Classes that somebody deleted and no live pod uses."""
    free = [name for name in _held_classes(inputs) if inputs.pods.error is None and name not in inputs.pods.classes]
    return [LetGo(Ref(CLASS, name), names.CLASS_FINALIZER) for name in free]


def _is_held(config: Object) -> bool:
    return FINALIZER in (metadata(config).get("finalizers") or ())


def _more(
    inputs: Inputs, config: Object, choices: Sequence[NodeChoice], classes: ClassPlan | None
) -> dict[str, KataCondition]:
    """The conditions beside `InProgress`: only those that have something to say."""
    more: dict[str, Any] = {
        status.NODES_REFUSED: status.nodes_refused(choices), status.REMOVAL_HELD: status.removal_held(choices),
        status.PEER_PODS_READY: peer_pods.problem(inputs),
    }  # fmt: skip
    if classes is not None and classes.problem is not None:
        more[status.CONFIDENTIAL_READY] = KataCondition(False, classes.reason, classes.problem)
    refused = mode.change_refused(mode.in_use(config), inputs.gates.deployment_mode, inputs.served)
    wrong = [*inputs.gates.problems, *([refused] if refused else [])]
    if wrong:
        reason = "ModeChangeRefused" if refused else "BadValue"
        more[status.GATES_UNDERSTOOD] = KataCondition(False, reason, "; ".join(wrong)[: status.MAX_MESSAGE])
    return {kind: state for kind, state in more.items() if state is not None}
