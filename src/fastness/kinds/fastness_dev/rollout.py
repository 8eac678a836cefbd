"""NodeOverlay and RolloutPolicy: how one machine differs, and how changes travel.

An overlay adds an Ignition fragment for machines with certain attested properties. A rollout policy spreads a change over a pool
in waves, watches each one for a while, and stops by itself.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.fastness_dev.declare import declare, uid
from fastness.kinds.kind import AGE, Column

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_MATCH = s.with_rules(
    s.obj(
        {
            "machines": s.list_set(uid(""), "UIDs of Machines.", minItems=1, maxItems=1024),
            "properties": s.mapping(
                s.string(maxLength=1024),
                "Properties that were attested, all of them.",
                minProperties=1,
                maxProperties=64,
            ),
        },
        "Which machines; one of the listed ones, or one with all the properties.",
    ),
    s.rule("has(self.machines) != has(self.properties)", "exactly one of machines, properties must be set"),
)

NODE_OVERLAY = declare(
    "NodeOverlay",
    "nodeoverlays",
    "Configuration that only some machines of a pool get.",
    s.obj(
        {
            "spec": s.obj(
                {
                    "match": _MATCH,
                    "config": s.anything("An Ignition fragment that is merged on top of the pool's config."),
                    "priority": s.integer(
                        "Overlays are merged in rising order.", format="int32", minimum=0, maximum=1000, default=100
                    ),
                },
                "What to add, and where.",
                required=("match", "config"),
            ),
            "status": s.obj(
                {
                    "observedGeneration": s.integer("Generation that the status speaks of.", format="int64", minimum=0),
                    "conditions": s.conditions(
                        "Valid: whether the fragment can be merged. Applied: whether the machines that match booted with it."
                    ),
                    "matched": s.integer("Machines that get it.", format="int32", minimum=0),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    columns=(Column("Priority", ".spec.priority", "integer"), Column("Matched", ".status.matched", "integer"), AGE),
    subresources=("status",),
)

_WAVE = s.exactly_one_of(
    s.obj(
        {
            "count": s.integer("Machines in this wave.", format="int32", minimum=1),
            "percent": s.integer("Share of the pool in this wave.", format="int32", minimum=1, maximum=100),
            "soak": s.duration("How long the wave is watched before the next one.", default="0s", maxLength=32),
        },
        "One wave.",
    ),
    "count",
    "percent",
)

_WINDOW = s.obj(
    {
        "days": s.list_set(s.enum(*_DAYS), "Days on which it opens; every day if not set.", minItems=1, maxItems=7),
        "start": s.string(
            "Time of day at which it opens, as 22:00.", pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", maxLength=5
        ),
        "duration": s.duration("How long it stays open.", maxLength=32),
        "timeZone": s.string("Time zone of the times, as Europe/Berlin.", default="UTC", maxLength=64),
    },
    "When machines may be disturbed; always if not set.",
    required=("start", "duration"),
)

ROLLOUT_POLICY = declare(
    "RolloutPolicy",
    "rolloutpolicies",
    "How a change travels through pools: in waves, watched, and stopped by itself.",
    s.obj(
        {
            "spec": s.obj(
                {
                    "poolSelector": s.label_selector("The pools that follow this policy."),
                    "waves": s.array(
                        _WAVE,
                        "The waves, in order; what is left goes in a last one.",
                        minItems=1,
                        maxItems=32,
                        **s.ATOMIC,
                    ),
                    "stopOn": s.obj(
                        {
                            "degraded": s.integer(
                                "Stop when so many machines are degraded.", format="int32", minimum=1, default=1
                            )
                        },
                        "When the rollout stops.",
                        default={},
                    ),
                    "window": _WINDOW,
                    "tryFor": s.duration("How long a machine may try before the change is undone on it.", maxLength=32),
                },
                "How changes travel.",
                required=("poolSelector",),
            ),
            "status": s.obj(
                {
                    "observedGeneration": s.integer("Generation that the status speaks of.", format="int64", minimum=0),
                    "wave": s.integer(
                        "Wave that is under way, counted from 1; 0 when none is.", format="int32", minimum=0
                    ),
                    "conditions": s.conditions("Progressing, Stopped and Waiting."),
                },
                "What was observed.",
            ),
        },
        required=("spec",),
    ),
    columns=(Column("Wave", ".status.wave", "integer"), AGE),
    subresources=("status",),
)

KINDS = (NODE_OVERLAY, ROLLOUT_POLICY)
