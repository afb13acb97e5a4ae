"""A local web server that can misbehave, and a wall around the tests: nothing leaves this machine."""

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from meltpoint.formats.download import RemoteFile

Behaviour = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of this test's own, no MELTPOINT_DATA, and no way out to the internet."""
    import pooch

    resolve = socket.getaddrinfo

    def resolve_local(host, *args, **kwargs):
        if host != "127.0.0.1":
            raise socket.gaierror(f"a test asked for {host}")
        return resolve(host, *args, **kwargs)

    folder = tmp_path / "cache"
    monkeypatch.setattr(socket, "getaddrinfo", resolve_local)
    monkeypatch.setattr(pooch, "os_cache", lambda project: folder / project)
    monkeypatch.delenv("MELTPOINT_DATA", raising=False)
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(variable, "127.0.0.1")
    return folder / "meltpoint"


class Web:
    """A server on this machine. Each address it gives out behaves in the way it was asked to."""

    body = bytes(range(256)) * 2000
    """Half a megabyte: many chunks, so that a break in the middle is in the middle."""

    def __init__(self) -> None:
        self.behaviours: dict[str, Behaviour] = {}
        self.visits: list[str] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.visits.append(self.path)
                web.behaviours[self.path](self)
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def at(self, behaviour: Behaviour) -> str:
        """A new address with this behaviour."""
        path = f"/{len(self.behaviours)}/data.bin"
        self.behaviours[path] = behaviour
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def file(self, *urls: str, body: bytes = body) -> RemoteFile:
        """The file with this content, to be had at these addresses."""
        checksum = "sha256:" + hashlib.sha256(body).hexdigest()
        return RemoteFile("data.bin", "some-set", len(body), checksum, urls)

    def sends(self, body: bytes = body, promised: int | None = len(body)) -> str:
        """Answers 200 with this body; `promised` is what it says the length is, None to say nothing."""

        def behave(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            if promised is not None:
                request.send_header("Content-Length", str(promised))
            request.end_headers()
            request.wfile.write(body)

        return self.at(behave)

    def answers(self, status: int) -> str:
        """Answers with an error and a page about it."""
        return self.at(lambda request: request.send_error(status))

    def never_ends(self) -> str:
        """Sends for as long as the other side listens."""

        def behave(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            request.end_headers()
            while True:
                try:
                    request.wfile.write(self.body)
                except OSError:
                    return

        return self.at(behave)

    def dead(self) -> str:
        """An address where nothing listens."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            return f"http://127.0.0.1:{taken.getsockname()[1]}/data.bin"


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    thread = threading.Thread(target=web.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield web
    web.server.shutdown()
    thread.join()
    web.server.server_close()
