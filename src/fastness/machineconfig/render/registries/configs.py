"""`99-<pool>-generated-registries`: one MachineConfig about registries for each pool with the built-in label.

Other pools take that of workers, as they take the rest of it, unless they have chosen another runtime. What is wrong with an
object stops all of them, and each keeps the config that it has; what a runtime cannot be told stops the pools with that runtime
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import is_being_deleted, labels_of, metadata, object_name
from fastness.machineconfig.render.base.rows import config_file
from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.generated import REGISTRIES, generated_manifest, generated_name
from fastness.machineconfig.render.registries.files import containerd_files, crio_files, untold
from fastness.machineconfig.render.registries.objects import RegistryObjects
from fastness.machineconfig.render.registries.settings import RegistrySettings, registry_settings
from fastness.machineconfig.render.settings.choices import has_chosen_runtime, runs_containerd
from fastness.protocol.ignition_spec import CURRENT

Object = Mapping[str, Any]
IMAGE_API: Final = "config.openshift.io/v1"


@dataclass(frozen=True, slots=True)
class RegistryConfigs:
    """What pools get, by pool: a config, or the reason why it is not made; and the settings, where they can be made at all.

    `lacking` is what a config leaves out although somebody asks for it.
    """

    configs: Mapping[str, JsonObject] = field(default_factory=dict)
    refused: Mapping[str, BadRegistries] = field(default_factory=dict)
    lacking: Mapping[str, BadRegistries] = field(default_factory=dict)
    settings: RegistrySettings | None = None

    @property
    def specs(self) -> dict[str, JsonObject]:
        """The specs of all configs, by the names of the configs."""
        return {object_name(config).name: config["spec"] for config in self.configs.values()}

    @property
    def reasons(self) -> dict[str, str]:
        """Why pools get none, by pool."""
        return {pool: str(error) for pool, error in self.refused.items()}


def registry_configs(
    objects: RegistryObjects, pools: Iterable[Object], controller: Object | None, version: str
) -> RegistryConfigs:
    """The configs of all pools that have one."""
    image = objects.image
    if image is None:
        return RegistryConfigs()
    chosen = receivers(pools, controller)
    try:
        settings = registry_settings(objects)
    except BadRegistries as error:
        return RegistryConfigs(refused={object_name(pool).name: error for pool in chosen})
    if settings is None:
        return RegistryConfigs()
    configs: dict[str, JsonObject] = {}
    refused: dict[str, BadRegistries] = {}
    lacking: dict[str, BadRegistries] = {}
    for pool in chosen:
        name, containerd = object_name(pool).name, runs_containerd(pool, controller)
        try:
            configs[name] = _config(name, settings, image, version, containerd=containerd)
        except BadRegistries as error:
            refused[name] = error
        missing = untold(settings) if containerd else None
        if missing is not None and name not in refused:
            lacking[name] = missing
    return RegistryConfigs(configs, refused, lacking, settings)


def receivers(pools: Iterable[Object], controller: Object | None) -> list[Object]:
    """The pools with a config of their own: those with the built-in label, and those with another runtime than workers."""
    staying = [pool for pool in pools if not is_being_deleted(pool)]
    workers = next((pool for pool in staying if object_name(pool).name == names.WORKER), {})
    usual = runs_containerd(workers, controller)

    def differs(pool: Object) -> bool:
        return has_chosen_runtime(pool) and runs_containerd(pool, controller) != usual

    return [pool for pool in staying if names.BUILT_IN_LABEL in labels_of(pool) or differs(pool)]


def _config(pool: str, settings: RegistrySettings, image: Object, version: str, *, containerd: bool) -> JsonObject:
    files = containerd_files(settings) if containerd else crio_files(settings)
    document: JsonObject = {"ignition": {"version": CURRENT}}
    if files:
        document["storage"] = {"files": [config_file(path, text) for path, text in files]}
    # No controller and no blocked deletion: the Image belongs to the platform, which may not let us hold it.
    owner = {"apiVersion": IMAGE_API, "kind": "Image", "name": object_name(image).name}
    reference = {**owner, "uid": metadata(image).get("uid") or ""}
    return generated_manifest(generated_name(REGISTRIES, pool), pool, {"config": document}, version, reference)
