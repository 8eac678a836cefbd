"""How a machine becomes a node: enrol, prove, fetch, join; and how it proves itself again.

forwarder.py          The address on a machine's own loopback that unmodified Ignition fetches its configuration from
waiting.py            Ignition's side of a first boot, without I/O: which request is answered, with what, and how often
user_data.py          Pool, ticket and server, read strictly, measured, and asked of the cluster
boot.py               From a ticket to a configuration: enrol, attest, fetch, check
image_trust.py        What a machine believes before anybody told it anything: the file that its measured image carries
enrol.py              The machine's half of enrolment: show the ticket, prove the key, learn one's name
attester.py           Whoever can speak for the hardware of a machine
prove.py              The machine's half of the key broker: answer a challenge with evidence, then ask for what is ours
fetch.py              The two ways in which a configuration reaches a machine that proved itself
join.py               Before `kubeadm join`: prove this machine, and come back with what lets it ask for a certificate
node_certificates.py  The node's certificates: keys made here, named in the proof, put where the kubelet looks
reattest.py           Staying attested: the machine proves itself again, every interval, for as long as it runs
configs.py            Where a running machine gets the rendered config that its node was told to go to
"""
