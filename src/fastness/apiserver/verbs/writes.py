"""The write pipeline: create and change.

Every write goes the same way, in the order of Kubernetes: draft (what the client sent, pruned and defaulted) → field
ownership (of what the client said, not of what the server adds) → the server's own fields and the strategy of the kind →
validation with causes → admission → store. Rules:

* Between looking at the head of an object and handing the change to the store nothing awaits: decisions are made on the
  latest state, and the store's `expect` proves it. What is large is decided in a thread (`apiserver.large_objects`), and decided
  anew when the head is another one afterwards.
* A change that changes nothing is not written: same resourceVersion, no event.
* An object under deletion disappears with its last finalizer, whoever removes it.
* `dry_run` goes the whole way and stops before the store.

Deletes are in `deletes.py`; what patches do to an object is in `edits.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fastness.apiserver import meta
from fastness.apiserver.admission.admit import Admission, Operation
from fastness.apiserver.call import Call
from fastness.apiserver.catalog import Served
from fastness.apiserver.large_objects import HeavyWork
from fastness.apiserver.refusals import already_exists, conflict, invalid, modified, not_found
from fastness.apiserver.store import Key, Record, Stale, Store, WriteStep
from fastness.apiserver.strategies import Preparation, Strategy, strategy_of
from fastness.apiserver.verbs import drafts
from fastness.apiserver.verbs.convert import inward, outward, require_storable_depth, to_storage
from fastness.apiserver.verbs.managed import Ownership
from fastness.apiserver.verbs.reads import require_readable
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import BadRequest, Cause, Invalid
from fastness.runtime.clock import Clock, Entropy

# As many as kube-apiserver tries before it gives a generated name up (27^5 suffixes: a second try is rare already).
GENERATE_ATTEMPTS = 8
DECIDE_ATTEMPTS = 5
Draft = Callable[[], JsonObject]
Edit = Callable[[JsonObject | None], JsonObject]
Judge = Callable[[Served, JsonObject, JsonObject | None], Sequence[Cause]]
_SERVERS_SIDE = ("metadata", "status")


@dataclass(frozen=True, slots=True)
class Written:
    """The object after a write, encoded in the version that was asked for."""

    body: bytes
    created: bool = False
    deleted: bool = False


class Writer:
    """Creates and changes objects."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        entropy: Entropy,
        admission: Admission,
        ownership: Ownership,
        judge: Judge,
        heavy: HeavyWork,
    ) -> None:
        self._store = store
        self._heavy = heavy
        self._judge = judge
        self._clock = clock
        self._entropy = entropy
        self._admission = admission
        self._ownership = ownership

    async def create(self, call: Call, served: Served, namespace: str, sent: JsonObject) -> Written:
        """A new object; raises AlreadyExists, Invalid, Forbidden, BadRequest."""

        def draft() -> JsonObject:
            read = drafts.read(call, served, sent)
            drafts.check_namespace(served, namespace, read["metadata"])
            if read["metadata"].get("resourceVersion"):
                raise BadRequest("resourceVersion should not be set on objects to be created")
            return read

        return await self.insert(call, served, draft)

    async def insert(self, call: Call, served: Served, draft: Draft, *, applied: bool = False) -> Written:
        """Store a draft as a new object; `applied` says that its field ownership is already in place."""
        work = partial(self._judged_new, call, served, draft, applied=applied)
        new, generated = await self._heavy.run(call.size, work)
        # The engine is asked before the rules judge, because they are pure functions and cannot wait for it.
        trial = await self._admission.trial(call, served, new, None)
        new = self._admission.review(call, served, Operation.CREATE, new, None, trial=trial)
        _warn_of_finalizers(call, served, new, None)
        # After every refusal that is not about the name, before the store: no act of a person without its entry.
        await self._admission.written_down(call, served, Operation.CREATE, new, None)
        # After the last await, so that the name is still free when the write is decided.
        key = self._free_key(served, new, generated=generated)
        if call.dry_run:
            return Written(self._trial(served, new), created=True)
        return Written(outward(served, await self._put(served, key, new, None)), created=True)

    def _judged_new(self, call: Call, served: Served, make: Draft, *, applied: bool) -> tuple[JsonObject, bool]:
        """The new object, and whether its name is generated; in any thread. Raises BadRequest, Invalid."""
        strategy, draft = strategy_of(served.kind), make()
        if not applied:
            # A uid or a time that the client made up is nobody's field: it is dropped before ownership is counted.
            draft = {**draft, "metadata": meta.stated(draft["metadata"])}
            self._ownership.on_create(call, served, draft, self._clock.now())
        new = self._prepared(call, served, strategy, draft)
        call.creating = name = new["metadata"].get("name") or ""
        causes = _metadata_causes(served, strategy, new) + self._content_causes(served, strategy, new, None)
        if causes:
            raise invalid(served, name, causes)
        require_storable_depth(served, new)
        return new, not draft["metadata"].get("name")

    def exists(self, served: Served, namespace: str, name: str) -> bool:
        """Whether there is such an object, with writes on their way."""
        return self._store.head(_key(served, namespace, name)) is not None

    def applied(
        self, call: Call, served: Served, live: JsonObject | None, config: JsonObject, subresource: str
    ) -> JsonObject:
        """The live object with a configuration merged into it; raises Conflict, BadRequest, Invalid."""
        return self._ownership.apply(call, served, live, config, subresource, self._clock.now())

    def _prepared(self, call: Call, served: Served, strategy: Strategy, draft: JsonObject) -> JsonObject:
        """The draft with the server's own fields."""
        now = self._clock.now()
        fresh = meta.for_create(draft["metadata"], uid=self._entropy.uid(), now=now, generation=strategy.generation)
        fresh.pop("resourceVersion", None)
        if not fresh.get("name") and fresh.get("generateName"):
            fresh["name"] = self._generated(fresh["generateName"])
        new = {**draft, "metadata": fresh}
        # With a status subresource the status is not the creator's to write, and RBAC grants it apart.
        if served.kind.has_status and not served.kind.native:
            new.pop("status", None)
        user = call.user
        strategy.on_create(new, Preparation(user.name, tuple(user.groups), user.uid, now))
        return new

    def _generated(self, prefix: str) -> str:
        return meta.generated_name(prefix, self._entropy.token(meta.RANDOM_SUFFIX))

    def _free_key(self, served: Served, new: JsonObject, *, generated: bool) -> Key:
        """The key of the new object; where the name was generated, another one when it is taken."""
        fields = new["metadata"]
        for _ in range(GENERATE_ATTEMPTS):
            key = Key(*served.storage_key, fields.get("namespace") or "", fields["name"])
            if self._store.head(key) is None:
                new["metadata"] = fields
                return key
            if not generated:
                break
            fields = {**fields, "name": self._generated(fields["generateName"])}
        raise already_exists(served, fields["name"])

    async def change(
        self,
        call: Call,
        served: Served,
        namespace: str,
        name: str,
        edit: Edit,
        subresource: str = "",
        *,
        applied: bool = False,
        patched: bool = False,
    ) -> Written:
        """Change an object as `edit` says; raises NotFound, Conflict, Invalid, Forbidden, BadRequest."""
        key = _key(served, namespace, name)
        work = partial(self._judged, call, served, key, edit, subresource, applied=applied, patched=patched)
        head, new, old = await self._decided(call, served, key, work)
        trial = await self._admission.trial(call, served, new, old, subresource)
        if trial is not None and trial.error is None and self._store.head(key) is not head:
            # The object changed while the engine was asked. Its answer is remembered, so that the second time takes no time.
            return await self.change(call, served, namespace, name, edit, subresource, applied=applied, patched=patched)
        new = self._admission.review(call, served, Operation.UPDATE, new, old, subresource, trial)
        _warn_of_finalizers(call, served, new, old)
        recorded = await self._admission.written_down(call, served, Operation.UPDATE, new, old, subresource)
        if recorded and self._store.head(key) is not head:
            # What was judged is not what is there any more: it is judged, and recorded, as the change that it is now.
            return await self.change(call, served, namespace, name, edit, subresource, applied=applied, patched=patched)
        return await self.settle(call, served, key, head, new, old, subresource)

    async def _decided(
        self, call: Call, served: Served, key: Key, work: Callable[[Record], tuple[JsonObject, JsonObject]]
    ) -> tuple[Record, JsonObject, JsonObject]:
        """The head that was decided on, the new object and the old one; raises Conflict when it never stops changing."""
        for _ in range(DECIDE_ATTEMPTS):
            head = self.head(served, key)
            new, old = await self._heavy.run(max(call.size, len(head.body)), partial(work, head))
            if self._store.head(key) is head:  # always, unless the work left the loop
                return head, new, old
        raise modified(served, key.name)

    def head(self, served: Served, key: Key) -> Record:
        """The newest record of an object; raises NotFound, InternalError when it is set aside."""
        require_readable(self._store, key)
        head = self._store.head(key)
        if head is None:
            raise not_found(served, key.name)
        return head

    def _judged(
        self,
        call: Call,
        served: Served,
        key: Key,
        edit: Edit,
        subresource: str,
        head: Record,
        *,
        applied: bool,
        patched: bool,
    ) -> tuple[JsonObject, JsonObject]:
        """The object after an edit and before it; in any thread. Raises Conflict, Invalid, BadRequest."""
        old = inward(served, head.body)
        draft = _read_patched(call, served, edit(old)) if patched else drafts.read(call, served, edit(old))
        self._check_identity(served, key, draft, old, head)
        new = self._merged(served, draft, old, subresource)
        if not applied and subresource != "binding":
            self._ownership.on_update(call, served, new, old, subresource, self._clock.now())
        if not subresource:
            strategy_of(served.kind).on_update(new, old)
        causes = self._causes(served, new, old, subresource)
        if causes:
            raise invalid(served, key.name, causes)
        require_storable_depth(served, new, leaving=bool(new["metadata"].get("deletionTimestamp")))
        return new, old

    async def read(self, served: Served, key: Key) -> tuple[Record, JsonObject]:
        """An object to be deleted, as it is now; raises NotFound, Conflict when it never stops changing."""
        for _ in range(DECIDE_ATTEMPTS):
            head = self.head(served, key)
            old = await self._heavy.run(len(head.body), partial(inward, served, head.body))
            if self._store.head(key) is head:
                return head, old
        raise modified(served, key.name)

    async def settle(
        self,
        call: Call,
        served: Served,
        key: Key,
        head: Record,
        new: JsonObject,
        old: JsonObject,
        subresource: str = "",
    ) -> Written:
        """Store a judged change, or nothing when nothing changed, or the end of an object that nothing holds any more."""
        strategy = strategy_of(served.kind)
        # Level-triggered controllers apply the same thing again and again: an event for each would wake all the others for ever.
        if _same(new, old):
            return Written(outward(served, head.body))
        # Status and metadata do not count: observedGeneration would never catch up with controllers that write their own status.
        if strategy.generation and subresource != "binding" and _spec_changed(new, old):
            new["metadata"]["generation"] = int(old["metadata"].get("generation") or 0) + 1
        ends = bool(new["metadata"].get("deletionTimestamp")) and not is_held(served, new)
        if call.dry_run:
            return Written(self._trial(served, new), deleted=ends)
        if ends:
            return Written(outward(served, await self.remove(served, key, head, new)), deleted=True)
        return Written(outward(served, await self._put(served, key, new, head)))

    def _check_identity(self, served: Served, key: Key, draft: JsonObject, old: JsonObject, head: Record) -> None:
        sent, stored_meta = draft["metadata"], old["metadata"]
        if not sent.get("name"):
            raise BadRequest(f"the name of the object ({key.name} in the path) must be in the body, too")
        drafts.check_name(key.name, sent)
        drafts.check_namespace(served, key.namespace, sent)
        # A PUT of what was read before the object was deleted and made anew must not overwrite its successor.
        if sent.get("uid") and sent["uid"] != stored_meta["uid"]:
            raise conflict(
                served, key.name,
                f"Precondition failed: UID in precondition: {sent['uid']}, UID in object meta: {stored_meta['uid']}",
            )  # fmt: skip
        deletion = sent.get("deletionTimestamp")
        if deletion and deletion != stored_meta.get("deletionTimestamp"):
            text = f'Invalid value: "{deletion[:40]}": field is immutable'
            raise invalid(served, key.name, [Cause("metadata.deletionTimestamp", "FieldValueInvalid", text)])
        version = sent.get("resourceVersion")
        # Against the head with writes on their way, not the committed record: of two writers with one version one loses, now.
        if version and version != str(head.revision):
            raise modified(served, key.name)
        if not version and not strategy_of(served.kind).unconditional:
            text = "Invalid value: 0: must be specified for an update"
            error = invalid(served, key.name, [Cause("metadata.resourceVersion", "FieldValueInvalid", text)])
            error.kind = served.kind.plural  # the one refusal of content where Kubernetes names the resource
            raise error

    def _merged(self, served: Served, draft: JsonObject, old: JsonObject, subresource: str) -> JsonObject:
        """The new object: what this request may change, over what it may not."""
        strategy = strategy_of(served.kind)
        stored_meta = old["metadata"]
        if subresource == "status":
            new = {**old, "metadata": dict(stored_meta)}
            if "status" in draft:
                new["status"] = draft["status"]
            else:
                new.pop("status", None)
            if not strategy.status_keeps_metadata:
                new["metadata"] = meta.for_update(draft["metadata"], stored_meta)
            elif "managedFields" in draft["metadata"]:
                new["metadata"]["managedFields"] = draft["metadata"]["managedFields"]
            return new
        new = {**draft, "metadata": meta.for_update(draft["metadata"], stored_meta)}
        if served.kind.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        if subresource in ("approval", "binding"):
            new["status"] = self._stamped(draft.get("status") or {})
        return new

    def _stamped(self, status: JsonObject) -> JsonObject:
        """A status whose conditions say since when they hold."""
        now = rfc3339(self._clock.now())
        times = {"lastUpdateTime": now, "lastTransitionTime": now}
        conditions = [{**times, **each} if "reason" in each else each for each in status.get("conditions") or ()]
        return {**status, "conditions": conditions} if conditions else status

    def _causes(self, served: Served, new: JsonObject, old: JsonObject, subresource: str) -> list[Cause]:
        strategy = strategy_of(served.kind)
        causes = _metadata_causes(served, strategy, new)
        if old["metadata"].get("deletionTimestamp"):
            before = set(old["metadata"].get("finalizers") or ())
            added = [entry for entry in new["metadata"].get("finalizers") or () if entry not in before]
            # Otherwise whoever may update an object could keep it from ever being deleted.
            if added:
                text = f"Forbidden: no new finalizers can be added while the object is being deleted: {added}"
                causes.append(Cause("metadata.finalizers", "FieldValueForbidden", text))
        if not subresource or strategy.checks_parts:
            return causes + self._content_causes(served, strategy, new, old)
        return causes + _schema_causes(served, new, old)

    def _content_causes(
        self, served: Served, strategy: Strategy, new: JsonObject, old: JsonObject | None
    ) -> list[Cause]:
        """What strategy, judge and schema find; "required" of the schema gives way to what was found there or below."""
        causes = [*strategy.check(new, old), *self._judge(served, new, old)]
        places = tuple(cause.field for cause in causes)
        return causes + [
            cause
            for cause in _schema_causes(served, new, old)
            if cause.reason != "FieldValueRequired" or not any(place.startswith(cause.field) for place in places)
        ]

    def _trial(self, served: Served, new: JsonObject) -> bytes:
        """The answer to a dry run; raises what storing it would, for its size as well."""
        versioned = {**new["metadata"], "resourceVersion": str(self._store.revision)}
        to_storage(served, {**new, "metadata": versioned}, leaving="deletionTimestamp" in versioned)
        return json.encode(new)

    async def _put(self, served: Served, key: Key, new: JsonObject, head: Record | None) -> bytes:
        # Being marked, or losing a finalizer, is a step of a deletion: on a full disk it may use what is kept back for those,
        # and an object that is as large as may be takes the few bytes more.
        leaving = head is not None and bool(new["metadata"].get("deletionTimestamp"))

        def make(revision: int) -> WriteStep:
            return WriteStep(key, _encoded(served, new, revision, leaving=leaving), head.revision if head else 0)

        try:
            records = await self._store.write(make, frees=leaving)
        except Stale as error:
            raise (modified(served, key.name) if head else already_exists(served, key.name)) from error
        return records[0].body

    async def remove(self, served: Served, key: Key, head: Record, last: JsonObject) -> bytes:
        """Take an object away; watchers see `last`."""

        def make(revision: int) -> WriteStep:
            return WriteStep(key, None, head.revision, _encoded(served, last, revision, leaving=True))

        try:
            records = await self._store.write(make)
        except Stale as error:
            raise modified(served, key.name) from error
        return records[0].body

    def marked(self, obj: JsonObject, *, grace: int = 0) -> JsonObject:
        """The object with deletion asked for."""
        fields = {
            **obj["metadata"],
            "deletionTimestamp": rfc3339(self._clock.now()),
            "deletionGracePeriodSeconds": grace,
        }
        if fields.get("generation"):
            fields["generation"] += 1
        return {**obj, "metadata": fields}


def _read_patched(call: Call, served: Served, result: JsonObject) -> JsonObject:
    """A patched object as a draft; what would be 400 of a body is the patch's fault and 422, as in Kubernetes."""
    try:
        return drafts.read(call, served, result)
    except BadRequest as error:
        cause = Cause("patch", "FieldValueInvalid", f"Invalid value: {error.message}")
        raise Invalid(f' "" is invalid: patch: {cause.message}', causes=[cause]) from error


def _warn_of_finalizers(call: Call, served: Served, new: JsonObject, old: JsonObject | None) -> None:
    """Kubernetes takes bare finalizers on custom objects, and says what it thinks of them."""
    if served.kind.native or not (finalizers := new["metadata"].get("finalizers")):
        return
    before = (old or {}).get("metadata", {}).get("finalizers") or ()
    for finalizer in finalizers:
        if "/" not in finalizer and finalizer not in (*before, "orphan", "foregroundDeletion"):
            call.warn(f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name with a path')


def _metadata_causes(served: Served, strategy: Strategy, new: JsonObject) -> list[Cause]:
    return meta.validate(
        new["metadata"],
        strategy.name_rule,
        namespaced=served.kind.namespaced,
        bare_finalizers=strategy.bare_finalizers,
    )


def _key(served: Served, namespace: str, name: str) -> Key:
    return Key(*served.storage_key, namespace if served.kind.namespaced else "", name)


def _schema_causes(served: Served, new: JsonObject, old: JsonObject | None) -> list[Cause]:
    """What the schema finds. Metadata of native kinds is judged by `meta`, and nothing in their status is required.

    A real server reads a status into a typed value and takes what is left out for empty.
    """
    causes = served.schema.validate(new, old)
    if not served.kind.native:
        return causes
    return [
        cause
        for cause in causes
        if not cause.field.startswith("metadata.")
        and not (cause.reason == "FieldValueRequired" and cause.field.startswith("status."))
    ]


def _encoded(served: Served, obj: JsonObject, revision: int, *, leaving: bool) -> bytes:
    obj["metadata"]["resourceVersion"] = str(revision)
    return to_storage(served, obj, leaving=leaving)


def _same(new: JsonObject, old: JsonObject) -> bool:
    """Whether nothing but the version differs."""
    if new.keys() != old.keys() or any(new[name] != old[name] for name in new if name != "metadata"):
        return False
    ignored = ("resourceVersion",)
    left = {name: value for name, value in new["metadata"].items() if name not in ignored}
    right = {name: value for name, value in old["metadata"].items() if name not in ignored}
    return left == right


def _spec_changed(new: JsonObject, old: JsonObject) -> bool:
    names = (new.keys() | old.keys()).difference(_SERVERS_SIDE)
    return any(new.get(name) != old.get(name) for name in names)


def is_held(served: Served, obj: JsonObject) -> bool:
    """Whether finalizers keep an object that is being deleted."""
    if obj["metadata"].get("finalizers"):
        return True
    is_namespace = served.storage_key == ("", "namespaces")
    return is_namespace and bool((obj.get("spec") or {}).get("finalizers"))
