"""What all doors share: a request with limits, an answer, a listener.

Doors are plain ASGI applications; there is no framework on the hot path (a small create must fit into a third of a millisecond).

* `request.py`: headers, query and a body that cannot be larger than the door allows.
* `answers.py`: a finished answer or a stream.
* `route.py`, `edge.py`: the table of a door, and the edge that finds a route, knows the caller, and makes an answer of anything.
* `listener.py`: uvicorn inside our loop with TLS, the peer's certificate, and bounds on connections, headers and idle time.
* `opening.py`: the one way to open and close a door, where it listens and under which names.
* `certificates.py`, `rotation.py`: certificates that are replaced while a listener runs.
* `rustls.py`: a listener outside our loop.
"""

from fastness.http.answers import Answer, Stream, send_answer
from fastness.http.request import Request

__all__ = ["Answer", "Request", "Stream", "send_answer"]
