"""What each verb does.

paths.py      REST paths of the Kubernetes API, taken apart once
writes.py     The write pipeline: create and change
drafts.py     From what a client sent to an object that may be stored
edits.py      What a PUT or a PATCH does to an object, as functions from the old object to the new one
applies.py    Server-side apply: create or merge, by what the applier states
managed.py    Field ownership inside the write pipeline
convert.py    Between the stored version of an object and the one that a client asked for
deletes.py    Deletes: what is asked for, what holds an object, what is left behind
reads.py      Get and list on the embedded store
selection.py  Which objects a list, a watch or a deletecollection is about
watches.py    Watches: changes after a revision, in order, without gaps
placement.py  Which pods are on which node, so that asking for the pods of a node does not read all of them
"""
