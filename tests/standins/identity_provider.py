"""An identity provider for tests: discovery, keys, the authorization code flow with PKCE, and tokens of any kind one asks for.

A stand-in, because a real one (Dex, Keycloak) is a server with a store of its own. Tokens are signed by joserfc, so that what we
verify is not what we made. It is strict where a provider is: a code is good once, for its redirect and its verifier alone.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import secrets
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import trustme
from joserfc import jws
from joserfc.jwk import ECKey, Key, RSAKey

CLIENT = "fastness"


class IdentityProvider:
    """The provider; `person` logs in whenever a browser comes."""

    def __init__(self, ca: trustme.CA) -> None:
        self.url = ""
        self.ca = ca
        self.keys: dict[str, Key] = {}
        self.person: dict[str, Any] = {"sub": "alice", "groups": ["operators"]}
        self.codes: dict[str, dict[str, str]] = {}
        self.paths: list[str] = []
        self.calls_itself = ""
        self.changed: dict[str, Any] = {}
        self.new_key("first")

    def new_key(self, kid: str, kind: str = "RSA") -> None:
        """Publish one more key; it signs from now on."""
        made = RSAKey.generate_key(2048) if kind == "RSA" else ECKey.generate_key("P-256")
        self.keys = {kid: made, **self.keys}

    def token(self, header: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
        """A token; None as a claim leaves it out."""
        kid, own = next(iter(self.keys.items()))
        now = int(time.time())
        every_claim = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 600, **self.person, **claims}
        algorithm = "RS256" if isinstance(own, RSAKey) else "ES256"
        protected = {"alg": algorithm, "kid": kid, **(header or {})}
        payload = json.dumps({name: value for name, value in every_claim.items() if value is not None})
        return jws.serialize_compact(protected, payload.encode(), key or own, algorithms=[protected["alg"]])

    def jwks(self) -> dict[str, Any]:
        """The public halves."""
        return {"keys": [{**key.as_dict(private=False), "kid": kid, "use": "sig"} for kid, key in self.keys.items()]}

    def discovery(self) -> dict[str, Any]:
        """What the provider says about itself."""
        return {
            "issuer": self.calls_itself or self.url, "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize", "token_endpoint": f"{self.url}/token",
            "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
        }  # fmt: skip

    def authorize(self, query: dict[str, str]) -> str:
        """Log the person in; where the browser is sent."""
        code = secrets.token_hex(16)
        self.codes[code] = query
        back = {"code": code, "state": query["state"], "iss": self.url}
        return f"{query['redirect_uri']}?{urlencode(back)}"

    def exchange(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """A token for a code."""
        begun = self.codes.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).decode().rstrip("=")
        if begun is None or form.get("redirect_uri") != begun["redirect_uri"] or challenge != begun["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        claims = {"nonce": begun["nonce"], **self.changed}
        return 200, {"id_token": self.token(**claims), "access_token": "opaque", "token_type": "Bearer"}


@contextmanager
def identity_provider(directory: Path) -> Iterator[tuple[IdentityProvider, Path]]:
    """A provider on loopback for the time of the block, and the file with its authority."""
    ca = trustme.CA()
    bundle = directory / "provider-ca.crt"
    ca.cert_pem.write_to_path(str(bundle))
    provider = IdentityProvider(ca)

    class Door(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            provider.paths.append(parts.path)
            if parts.path == "/authorize":
                self._answer(302, b"", provider.authorize(dict(parse_qsl(parts.query))))
                return
            documents = {"/.well-known/openid-configuration": provider.discovery, "/keys": provider.jwks}
            if parts.path not in documents:
                self._answer(404, b"{}")
                return
            self._answer(200, json.dumps(documents[parts.path]()).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0"))).decode()
            code, answer = provider.exchange({name: values[0] for name, values in parse_qs(body).items()})
            self._answer(code, json.dumps(answer).encode())

        def _answer(self, code: int, body: bytes, location: str = "") -> None:
            self.send_response(code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if location:
                self.send_header("location", location)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    provider.url = f"https://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider, bundle
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
