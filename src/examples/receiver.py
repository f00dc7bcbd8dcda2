"""A webhook receiver to start from, with Python's standard library alone (3.9 or later). It verifies each webhook, responds at
once, skips events that it has had already, and prints each event on one line:

    APPLICATION_SECRET=bdss_… PORT=4000 python3 src/examples/receiver.py

While you change from one application secret to the next, give both, separated by a comma.
"""

import base64
import hmac
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRETS = [secret.encode() for secret in os.environ.get("APPLICATION_SECRET", "").split(",") if secret]
# An older webhook is refused, because it may be a replay.
TOLERANCE_SECONDS = 5 * 60
MAX_BODY_BYTES = 64 * 1024
MAX_REMEMBERED_EVENTS = 10_000

# Events come at least once, so sometimes twice. In your server this is a unique column in the table that an event changes. They
# also come in any order: of an event about a badge's state, ignore a data.change that is lower than the one you have stored.
handled: "dict[str, None]" = {}
handling = threading.Lock()


def signature(secret: bytes, algorithm: str, message: bytes) -> str:
    return base64.b64encode(hmac.new(secret, message, algorithm).digest()).decode()


def is_any_of(given: "list[str]", expected: "list[str]") -> bool:
    """Compares in constant time, because the time of a comparison could reveal how much of a guess is right."""
    return any(hmac.compare_digest(one.encode(), other.encode()) for one in given for other in expected)


def is_genuine(headers, body: bytes) -> bool:
    """Checks `Signature`, and the Standard Webhooks headers, which also sign the ID and the time."""
    identifier, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = f"{identifier}.{timestamp}.".encode() + body
    sha1 = [signature(secret, "sha1", body) for secret in SECRETS]
    # While the application has two secrets, there is an entry for each.
    sha256 = ["v1," + signature(secret, "sha256", signed) for secret in SECRETS]
    entries = headers.get("webhook-signature", "").split(" ")
    return is_any_of([headers.get("Signature", "")], sha1) and is_any_of(entries, sha256)


def receive(headers, body: bytes) -> int:
    """The status to respond with: 2xx means that the event is stored; after anything else it is sent again."""
    if not is_genuine(headers, body):
        print("refused: not signed with this secret, or too old", file=sys.stderr)
        return 401
    event = json.loads(body)
    with handling:
        if event["id"] in handled:
            return 204
        # The service waits 15 s for the response: put work that takes longer into a queue.
        data = json.dumps(event["data"], ensure_ascii=False, separators=(",", ":"))
        print(event["event"], event["id"], data, flush=True)
        handled[event["id"]] = None
        while len(handled) > MAX_REMEMBERED_EVENTS:
            del handled[next(iter(handled))]
    return 204


def length(text: str, base: int, most: int) -> int:
    """Raises ValueError unless it is a number, and at most the largest allowed."""
    if not re.fullmatch(r"[0-9a-fA-F]{1,9}", text) or int(text, base) > most:
        raise ValueError("more than any webhook has")
    return int(text, base)


class Receiver(BaseHTTPRequestHandler):
    timeout = 30

    def do_POST(self) -> None:
        try:
            body = self.read_body()
        except ValueError:
            # More than any webhook has: the connection ends without a response.
            self.close_connection = True
            return
        self.send_response(receive(self.headers, body))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def read_body(self) -> bytes:
        """The bytes as they arrived, since those were signed: parsed and serialized again, they would not match."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(length(self.headers.get("Content-Length", "0"), 10, MAX_BODY_BYTES))
        # A proxy may send it so (RFC 9112 section 7.1).
        body = b""
        while True:
            line = self.rfile.readline(100).decode("latin-1")
            size = length(line.partition(";")[0].strip(), 16, MAX_BODY_BYTES - len(body))
            if size == 0:
                return body
            body += self.rfile.read(size)
            self.rfile.readline(2)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        """Prints nothing, because only events are printed."""


def main() -> int:
    if not SECRETS:
        print("Set APPLICATION_SECRET to the application's secret.", file=sys.stderr)
        return 1
    sys.stdout.reconfigure(encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4000"))), Receiver)
    print(f"Waiting for webhooks on http://localhost:{server.server_address[1]}/", flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
