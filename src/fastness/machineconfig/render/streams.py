"""Which operating system a pool runs when no config names an image: its stream.

A pool that names a stream gets it; a custom pool that names none follows the worker pool; all others follow the cluster's
default. The streams on offer stand in the status of the OSImageStream `cluster`; without one, the ControllerConfig names the
image. The major version of the system is read from the name of its stream, as in `rhel-10`, because nothing else says it before
a boot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import object_name
from fastness.machineconfig.render.render import Defaults

Object = Mapping[str, Any]
_MAJOR: Final = re.compile(r"-(\d{1,3})(?:[.-]|\Z)", re.ASCII)


def stream_name(pool: Object, pools: Iterable[Object], streams: Object | None) -> str:
    """The stream that a pool follows; empty when nobody says."""
    own = _named(pool)
    if own:
        return own
    if object_name(pool).name not in names.BUILT_IN_POOLS:
        worker = next((one for one in pools if object_name(one).name == names.WORKER), None)
        inherited = _named(worker) if worker is not None else ""
        if inherited:
            return inherited
    status, spec = ((streams or {}).get(part) or {} for part in ("status", "spec"))
    return str(status.get("defaultStream") or spec.get("defaultStream") or "")


def with_stream(
    defaults: Defaults, pool: Object, pools: Iterable[Object], streams: Object | None
) -> tuple[Defaults, str, str]:
    """The defaults of one pool, the name of its stream, and why there are none: it follows a stream that is not on offer."""
    name = stream_name(pool, pools, streams)
    if not name:
        return defaults, "", ""
    offered = ((streams or {}).get("status") or {}).get("availableStreams") or ()
    found = next((one for one in offered if one.get("name") == name), None)
    if found is None:
        there = ", ".join(str(one.get("name")) for one in offered) or "none"
        return defaults, name, f"the pool follows the stream {name}, which is not on offer (there are: {there})"
    image, extensions = str(found.get("osImage") or ""), str(found.get("osExtensionsImage") or "")
    return replace(defaults, os_image=image, extensions_image=extensions, os_major=major(name)), name, ""


def major(stream: str) -> int:
    """The major version of the system in a stream; 0 when its name does not say."""
    found = _MAJOR.search(stream)
    return int(found[1]) if found else 0


def _named(pool: Object) -> str:
    return str(((pool.get("spec") or {}).get("osImageStream") or {}).get("name") or "")
