"""A web server on 127.0.0.1 for tests of downloads: what it answers is set by path."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from jaxsim.data.catalogue import Corpus

ONE, TWO = b"one file\n" * 40_000, b"another"


class Server:
    """Bodies by path; `asked` lists the paths that were asked for, `ranges` the parts.

    With a header ``ETag`` it sends the part that is asked for, if the version is the same one. After ``sent_bytes`` of
    a body it breaks off.
    """

    def __init__(self, port: int):
        """An empty server at ``port``."""
        self.url = f"http://127.0.0.1:{port}"
        self.bodies: dict[str, bytes] = {}
        self.headers: dict[str, str] = {}
        self.asked: list[str] = []
        self.missing_bytes = 0
        self.sent_bytes: int | None = None
        self.ranges: list[str] = []


@contextlib.contextmanager
def serve() -> Iterator[Server]:
    """Runs a server while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append(self.path)
            body = server.bodies.get(self.path)
            if body is None:
                self.send_error(404)
                return
            start, wanted = 0, self.headers.get("Range")
            if wanted:
                server.ranges.append(wanted)
            tag = server.headers.get("ETag")
            if wanted and tag and self.headers.get("If-Range", tag) == tag:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(body):
                    self.send_error(416)
                    return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            self.send_header("Content-Length", str(len(body) - start + server.missing_bytes))
            for name, value in server.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[start:][: server.sent_bytes])

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = Server(http.server_port)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def corpus(url: str = "", **changes) -> Corpus:
    """A corpus "small" of two files, with addresses at the server if ``url`` is given."""
    digests = {"one.txt": hashlib.sha256(ONE).hexdigest(), "two.txt": hashlib.sha256(TWO).hexdigest()}
    addresses = {file: f"{url}/public/{file}" for file in digests} if url else {}
    told = {"source": "example.org/texts", "packed": "as they are", "files": digests, "addresses": addresses, **changes}
    return Corpus("small", "two small files", licence="none", **told)
