"""The images for tests: built once per run from what is kept, run by runc, pushed to a registry.

- `fixtures` is the pytest plugin with `server_image` and `agent_image`, and `fastness_image`, the name that pods of a bed use.
- `container` unpacks an image and runs it as a kubelet of the restricted level would, with runc alone.
- `small` is an image of one file.

`tools/release` builds them.
"""
