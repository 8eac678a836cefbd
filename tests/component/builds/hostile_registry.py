"""A registry on loopback that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fastness.formats import json, oci
from fastness.kinds.kind import JsonObject

IMAGE = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass
class Answer:
    """What is answered: a status, headers, and a body, another body each time, or pieces of one that never end."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    drips: Callable[[], bytes] | None = None
    bodies: Iterator[bytes] = field(default_factory=lambda: iter(()))


class HostileRegistry:
    """Answers by method and end of the path; 404 for all else."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.answers: dict[tuple[str, str], Answer] = {}
        self.asked: list[tuple[str, str]] = []

    def blob(self, content: bytes) -> JsonObject:
        """Have a part of an image; what manifests say of it."""
        self.answers["GET", f"blobs/{oci.digest_of(content)}"] = Answer(body=content)
        return {"digest": oci.digest_of(content), "size": len(content)}

    def manifest(self, document: Any) -> str:
        """Have a manifest; the name of its image."""
        content = document if isinstance(document, bytes) else json.canonical(document)
        self.answers["GET", f"manifests/{oci.digest_of(content)}"] = Answer(body=content)
        return f"{self.address}/os/base@{oci.digest_of(content)}"

    def image(self, *layers: bytes, config: bytes = b"{}") -> str:
        """Have an image of these layers; its name."""
        return self.manifest({"config": self.blob(config), "layers": [self.blob(each) for each in layers]})


@contextmanager
def hostile_registry() -> Iterator[HostileRegistry]:
    """One for the time of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            path = self.path.partition("?")[0]
            registry.asked.append((self.command, path))
            self.rfile.read(int(self.headers.get("content-length") or 0))
            matching = (
                each
                for (method, end), each in registry.answers.items()
                if method == self.command and path.endswith(end)
            )
            answer = next(matching, Answer(404))
            body = next(answer.bodies, answer.body)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.drips is None:
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            while answer.drips is not None and (piece := answer.drips()):
                self.wfile.write(piece)
                self.wfile.flush()

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - names of the library

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Who hangs up on us has a reason."""

    server = Server(("127.0.0.1", 0), Handler)
    registry = HostileRegistry(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
