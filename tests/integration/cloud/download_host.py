"""
A stand-in for the host of downloads: a proxy that ends the connections which it is asked for, with a certificate of its own.

    with DownloadHost(folder, {"/install.sh": b"#!/bin/sh …"}) as host:
        environment |= host.environment
"""

from __future__ import annotations

import datetime as dt
import ssl
import threading
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import BinaryIO, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "get.pulumi.com"


class DownloadHost:
    """Answers `GET` for each path of `files`; everything else does not exist."""

    def __init__(self, folder: Path, files: dict[str, bytes]) -> None:
        self._certificate = folder / "certificate.pem"
        self._certificate.write_bytes(_certificate())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        self._server = _Server(("127.0.0.1", 0), _Tunnel)
        self._server.context, self._server.files = context, files

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a program that downloads from here."""
        return {
            "HTTPS_PROXY": f"http://127.0.0.1:{self._server.server_address[1]}",
            "SSL_CERT_FILE": str(self._certificate),
        }

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    context: ssl.SSLContext
    files: dict[str, bytes]


class _Tunnel(StreamRequestHandler):
    server: _Server
    rfile: BinaryIO

    def handle(self) -> None:
        wanted = self._request().split()[1]
        if wanted != f"{HOST}:443":
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with self.server.context.wrap_socket(self.connection, server_side=True) as secured:
            with secured.makefile("rb") as self.rfile:
                body = self.server.files.get(self._request().split()[1])
            status = "404 Not Found" if body is None else "200 OK"
            size = len(body or b"")
            head = f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
            secured.sendall(head.encode() + (body or b""))

    def _request(self) -> str:
        first = self.rfile.readline().decode("latin-1")
        while self.rfile.readline().strip():
            pass
        return first


def _certificate() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    # Far from any clock that a test sets.
    begin = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin.replace(year=2090))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(pem, *plain) + certificate.public_bytes(pem)
