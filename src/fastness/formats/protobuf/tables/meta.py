"""Metadata and the messages that every group shares.

Facts of the Kubernetes 1.36 API; `protobuf.schema` explains the notation.
"""

from typing import Final

MESSAGES: Final = """\
meta.Condition: 1 type string!; 2 status string!; 3 observedGeneration int; 4 lastTransitionTime time;
  5 reason string!; 6 message string!
meta.DeleteOptions: 1 gracePeriodSeconds int!; 2 preconditions meta.Preconditions; 3 orphanDependents bool!;
  4 propagationPolicy string!; 5 dryRun []string; 6 ignoreStoreReadErrorWithClusterBreakingPotential bool!
meta.FieldSelectorRequirement: 1 key string!; 2 operator string!; 3 values []string
meta.LabelSelector: 1 matchLabels {}string; 2 matchExpressions []meta.LabelSelectorRequirement
meta.LabelSelectorRequirement: 1 key string!; 2 operator string!; 3 values []string
meta.ManagedFieldsEntry: 1 manager string; 2 operation string; 3 apiVersion string; 4 time time; 6 fieldsType string;
  7 fieldsV1 rawjson; 8 subresource string
meta.ObjectMeta: 1 name string; 2 generateName string; 3 namespace string; 4 selfLink string; 5 uid string;
  6 resourceVersion string; 7 generation int; 8 creationTimestamp time; 9 deletionTimestamp time;
  10 deletionGracePeriodSeconds int!; 11 labels {}string; 12 annotations {}string;
  13 ownerReferences []meta.OwnerReference; 14 finalizers []string; 17 managedFields []meta.ManagedFieldsEntry
meta.OwnerReference: 1 kind string!; 3 name string!; 4 uid string!; 5 apiVersion string!; 6 controller bool!;
  7 blockOwnerDeletion bool!
meta.Preconditions: 1 uid string!; 2 resourceVersion string!
"""
