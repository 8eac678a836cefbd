"""Bytes to values and back, without I/O: the one home of hostile input.

Every parser is a total function: it returns a value or raises one `FormatError` (tree in `errors`), within explicit bounds on
size, depth and work. Nothing here reads a clock, a file or a random number, and nothing recurses deeper than its input may nest.

| For the Kubernetes API | |
| --- | --- |
| `json` | strict JSON, repeated keys reported, canonical form |
| `yaml`, `yamlscalars` | YAML as Kubernetes reads it, with line numbers |
| `protobuf` | request bodies of kubectl's typed commands, by tables |
| `patch` | merge patch, JSON patch, strategic merge patch |
| `selectors`, `names` | label and field selectors; names and label values |
| `jsonpath` | paths of table columns |
| `quantity`, `duration`, `continue_token` | resource amounts, int-or-percent; how long; pagination |

| For machines | |
| --- | --- |
| `ignition` | machine configs of every spec: checked, merged, translated, predicted |
| `dataurl` | contents inside a config: data URLs, gzip, hashes |
| `pointer`, `userdata` | the config in the image that leads Ignition to the agent; what the agent takes from the host |
| `origin` | where a door is |
| `cpio` | the initial file system of a boot image, as far as checks look at it |

Callers above (`domain`, `cluster`, `services`) decide what a refusal means to the client.
"""
