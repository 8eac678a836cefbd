"""What all doors share: a request with limits, an answer, a listener.

Doors are plain ASGI applications; there is no framework on the hot path (a small create must fit into a third of a millisecond).

* `request.py`: headers, query and a body that cannot be larger than the door allows.
* `answers.py`: a finished answer or a stream.
* `listener.py`: uvicorn inside our loop with TLS, the peer's certificate, and bounds on connections, headers and idle time.
* `door.py`: where a door listens and under which names, and a door that is open.
* `showing.py`, `rotation.py`: certificates that are replaced while a listener runs; `rust.py`: a listener outside our loop.
"""

from fastness.services.http.answers import Answer, Stream, send_answer
from fastness.services.http.request import Request

__all__ = ["Answer", "Request", "Stream", "send_answer"]
