"""From evidence to a verdict, and what a verdict means afterwards.

    evidence/   Judging one kind of evidence: is it the vendor's word, about what, and how new
    values/     Reference values and their life
    policy/     Policies on claims: which judge, what they see, what they concluded
    verdict/    What follows from an appraisal: concluding, distrusting, overriding, explaining
    machine/    A machine's place and proof over time
    status/     What the cluster says of itself
    admission/  Rules about the objects that trust rests on, and what a change of them lowers
    live/       The verifier of a cluster, with its caches and documents
    loops/      Loops of attestation: what is kept of proofs, and what becomes of machines that lose theirs

Formats parse, crypto verifies, this room judges. Each kind of evidence has one module with one function that takes parsed
evidence, certificates, expectations and a time, and returns an `Appraisal`: an ordered list of checks. Outside `live` and
`loops` nothing reads a file or a clock, so a verdict can be made again from its inputs.
"""
