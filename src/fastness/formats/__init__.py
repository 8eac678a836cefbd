"""Bytes to values and back, without I/O: the one home of hostile input.

    composefs.py        What `cfsctl` prints: images of a composefs repository, what a pull brought, the root on a command line
    continue_token.py   The continue token of a paginated list: where the next page starts, and at which version of the store
    coreos_stream.py    CoreOS stream metadata: which boot images a release has, on every platform and architecture
    cpio.py             The initial file system of a boot image
    cursor.py           Reading fixed binary layouts: a cursor that cannot run past the end
    data_url.py         Data URLs, compression and verification hashes: how a config carries the contents of a file
    der.py              Just enough DER to read the vendors' certificate extensions
    dpkg_status.py      The list of packages that dpkg keeps: which are installed, in which version
    elf.py              Programs and libraries of Linux: for which processor, and what they need beside themselves
    errors.py           The errors of every parser in this package
    evidence/           Evidence and what it is made of, as bytes
    image_reference.py  References of container images: where an image is, and which bytes are meant
    initdata.py         Init data: the small TOML document that a host hands to a guest, measured before the guest runs
    json.py             JSON as the Kubernetes API reads it: strict, bounded, cheap for small objects
    jsonpath/           JSONPath as Kubernetes uses it in printer columns, `kubectl wait` and `scale` paths
    luks2/              LUKS2: the header of an encrypted volume, as bytes and back
    names.py            The names that Kubernetes allows: labels, subdomains, qualified names, label values, path segments
    os_status.py        What `bootc status` and `rpm-ostree status` print: what is booted, staged and kept to fall back to
    package_lists.py    Which packages an image has: a header of rpm's database, and the text of dpkg's
    patch/              The three patch languages of the Kubernetes API, as pure functions on decoded JSON
    protobuf/           Kubernetes' protobuf request bodies, decoded to the JSON form that the rest of the house works with
    quantity.py         Numbers with a unit: quantities of Kubernetes, int-or-percent, durations
    selectors/          What `kubectl -l` and `--field-selector` send, and the LabelSelector of objects
    tlog.py             The record as bytes: tiles, bundles of entries and checkpoints, in the shape of C2SP tlog-tiles
    toml.py             TOML as the tools of a node read it, and back to text: settings of the container runtime and its storage
    url_path.py         The path of a URL, taken apart without surprises
    words.py            Numbers of things as people say them: `1 entry`, `2 entries`
    yaml.py             YAML as Kubernetes reads it: one or more documents to JSON values, with line numbers for every complaint
    yaml_text.py        JSON values as YAML text that Kubernetes reads back as the same values
    yaml_scalars.py     What a plain YAML scalar means to Kubernetes: YAML 1.1 as its Go library reads it, then JSON
    zstd.py             Where a zstd frame ends (RFC 8878, section 3.1.1), without unpacking it
    gotemplate/         Templates in Go's text/template language: from text to a tree, without running anything
    regexp/             Regular expressions as Go and RE2 read them, where they run, and how much that costs
    client_hello.py     The server name in a TLS ClientHello, before anybody answers it
    cosign.py           Signatures of images as cosign writes them, beside the image
    oci.py              Images of a registry, as bytes and headers: references, manifests, configurations, challenges, credentials
    oci_layer.py        One file out of a layer of an image: a tar archive, plain or packed with gzip
    oci_tree.py         The files of an image, out of its layers: single paths of the tree that a machine would boot
    tar_stream.py       Tar archives that come in pieces: every member in order, the content of those that somebody wants

Every parser is a total function: it returns a value or raises one `FormatError` (tree in `errors`), within explicit bounds on
size, depth and work. Nothing here reads a clock, a file or a random number, and nothing recurses deeper than its input may nest.
What a refusal means to a client is decided by whoever called. Ignition configs have their parsers in `machineconfig/ignition`,
messages between machines and the cluster in `protocol`.
"""
