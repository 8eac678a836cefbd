"""What all doors share: a request with limits, an answer, a table of routes, a listener and its certificate.

    route.py         One way into a door, and the table of all of them. What is not in the table does not exist
    edge.py          The edge of a door: from bytes of a stranger to a handler that knows its caller
    request.py       A request as handlers see it
    answers.py       Answers: finished bytes, or a stream of chunks
    refusals.py      How every door says no
    limits.py        How much callers may take at once: each machine, each address, all strangers together
    opening.py       The one way to open a door, to keep its certificate fresh and to close it
    listener.py      A listener: uvicorn as a task of our loop, with TLS and bounds
    protocol.py      uvicorn's protocol, with the peer's certificate and bounds on what a stranger may take
    certificates.py  Listeners that can show another certificate without a restart
    rotation.py      The certificate that a listener shows, kept fresh without a restart
    mounted.py       A certificate that somebody else issues and renews, as files of a mounted Secret
    arrivals.py      Who may hold a connection, from the moment that it is accepted
    bounds.py        How much a stranger may take: of memory, of descriptors, of time
    faces.py         Further server names of a port, each with a TLS context and an application of its own
    freshness.py     Whether a door can know what it must know before anything leaves it
    health.py        Health with reasons, and the door for operators of a process without an API of its own
    rustls.py        A listener whose TLS and HTTP run in Rust threads (granian, rustls), for a stand-alone config server
    shared_port.py   A port that passes from one listening socket to the next, both of a library that gives neither away
    streaming.py     Sending a stream until it ends or the client has gone

Doors are plain ASGI applications; there is no framework on the hot path (a small create must fit into a third of a
millisecond). A door states its routes (`route`), the edge finds one, knows the caller and makes an answer of anything (`edge`),
and `opening` is the one way to open and close it.
"""

from fastness.http.answers import Answer, Stream, send_answer
from fastness.http.request import Request

__all__ = ["Answer", "Request", "Stream", "send_answer"]
