"""Verbs about images of machines.

build_log.py      `fastness image log`: what a build of a pool's image printed
diff.py           `fastness image diff`: files, packages and measurements that are different between two images
image_queue.py    `fastness image history` and `fastness image replay`: what a node booted, and the same images elsewhere
image_trust.py    `fastness image trust`: the file that an image carries so that its machines know this cluster
image_ways.py     What the verbs that take an image say about the ways into it: `measure`, `image approve`, `machine image`
images.py         `fastness image`: approve what machines may boot, see what is approved, and take it back
machine_image.py  `fastness machine image`: put the agent into an image, and close the ways by which its host could turn it
measure.py        `fastness measure`: what a machine will measure when it boots an image, before any machine does
node_files.py     The directory of `fastness machine image --with-node`
packages.py       `fastness image packages`: which packages an image has, read out of its registry
placement.py      `fastness image what-goes-where`: image or disk, for every path of a pool, and why
platform.py       `fastness image platform`: tell the cluster what firmware its machines have
show.py           `fastness image show`: what is known of one image, and which file of it gave which value
"""
