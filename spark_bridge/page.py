"""A small web page of the driver: live throughput, window fill and health of the workers.

It listens on this machine alone, serves two fixed addresses and takes nothing from who asks.
"""

import json
import threading
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from pyspark.sql import SparkSession

from spark_bridge.listener import Board, JoinListener

__all__ = ["Page", "serve_page"]

_PAGE = Path(__file__).with_name("page.html")


class Page:
    """The page of a board, until it is closed; a context manager."""

    def __init__(self, board: Board, port: int = 0) -> None:
        self.board = board
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(board))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> "Page":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def serve_page(spark: SparkSession, port: int = 0) -> Page:
    """Serve the joins of all queries of a session; `page.url` says where."""
    board = Board()
    JoinListener(board).attach(spark)
    return Page(board, port)


def _handler(board: Board) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/":
                self._send(HTTPStatus.OK, "text/html; charset=utf-8", _PAGE.read_bytes())
            elif self.path == "/joins.json":
                states = json.dumps([asdict(state) for state in board.states()])
                self._send(HTTPStatus.OK, "application/json", states.encode())
            else:
                self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is / and /joins.json\n")

        def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Security-Policy", "default-src 'self' 'unsafe-inline'")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Who looks is nobody's business."""

    return Handler
