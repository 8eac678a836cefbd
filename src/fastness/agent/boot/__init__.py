"""How a machine becomes a node: enrol, prove, fetch, join; and how it proves itself again.

forwarder.py          The address on a machine's own loopback that unmodified Ignition fetches its configuration from
waiting.py            Ignition's side of a first boot, without I/O: which request is answered, with what, and how often
user_data.py          Pool, ticket and server, read strictly, measured, and asked of the cluster
boot.py               From a ticket to a configuration: enrol, attest, fetch, check
image_trust.py        What a machine believes before anybody told it anything: the file that its measured image carries
enrol.py              The machine's half of enrolment: show the ticket, prove the key, learn one's name
attester.py           Whoever can speak for the hardware of a machine
luks_volumes.py       The volumes of a real machine: LUKS2 on block devices, with ext4 on top
root_source.py        What a new root volume is filled with: a tree that the boot measured, and no other
mounted.py            Whether the system that is about to start stands on the volumes of its image
note_device.py        The device with the note beside the volumes, and what of a TPM's identity goes along
generation.py         How often a volume was opened: a number that a copy of an older disk does not have
prove.py              The machine's half of the key broker: answer a challenge with evidence, then ask for what is ours
fetch.py              The two ways in which a configuration reaches a machine that proved itself
join.py               Before `kubeadm join`: prove this machine, and come back with what lets it ask for a certificate
node_certificates.py  The node's certificates: keys made here, named in the proof, put where the kubelet looks
reattest.py           Staying attested: the machine proves itself again, every interval, for as long as it runs
unlock.py             Opening volumes in the initial file system: prove, fetch the keys, make or open, count, report
volumes.py            What unlocking needs of a machine's volumes, and which ones an image has
whereabouts.py        Where the broker is: as the note or the config says, or where the enrolment door says that it went
configs.py            Where a running machine gets the rendered config that its node was told to go to
"""
