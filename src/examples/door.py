"""A door to start from, in Python (3.9 or later, with the package `cryptography`). It downloads the application's keys and status
lists every 30 seconds, stores them, and decides about badge signatures, one a line, without asking the service:

    python3 src/examples/door.py --service https://badges.example --application app_…

Without the network it uses what it has stored in its file, also after a restart. `badge_verify.py` must be importable: it is
beside this file, in src/verify/python, or on PYTHONPATH.
"""

import argparse
import json
import math
import os
import pathlib
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import Callable

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "verify" / "python"))

from badge_verify import Refused, StatusList, read_status_list, verify_badge_signature  # noqa: E402

# Status lists say `ttl` 60; half of it, so that a revoked badge is refused within two minutes.
REFRESH_SECONDS = 30
START_WAIT_SECONDS = 3
# Clocks of service and door may differ by this, unless a signature may not even be so old.
CLOCK_TOLERANCE_SECONDS = 60
# Lists whose content has not changed are written only this often, because flash memory wears out.
SAVE_UNCHANGED_SECONDS = 600
DOWNLOAD_TIMEOUT_SECONDS = 10
# More than any list or key set of the service.
MAX_DOWNLOAD_BYTES = 524_288
# Over a hundred million badges.
MAX_STATUS_LISTS = 1000


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Another host does not speak for the service."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


class Door:
    def __init__(self, service: str, application: str, file: pathlib.Path, oldest_seconds: float) -> None:
        self._base = f"{service.rstrip('/')}/v1/applications/{application}"
        self._application = application
        self._file = file
        self._oldest_seconds = oldest_seconds
        self._tolerance_seconds = min(CLOCK_TOLERANCE_SECONDS, oldest_seconds)
        self._keys: dict = {"keys": []}
        self._lists: "dict[str, StatusList]" = {}
        # As they were downloaded, for the file.
        self._texts: "dict[str, str]" = {}
        try:
            self._load()
        except Exception as error:
            print(f"{file} is ignored: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        # At first there is nothing to write.
        self._saved = self._content()
        self._saved_at = -math.inf

    def decide(self, jwt: str) -> str:
        try:
            badge = verify_badge_signature(
                jwt.strip(),
                keys=self._keys,
                application_id=self._application,
                now=time.time(),
                # The tolerance is part of the age, so that a photograph of a code is refused when it is older.
                clock_tolerance_seconds=self._tolerance_seconds,
                max_age_seconds=self._oldest_seconds - self._tolerance_seconds,
                # A copy: the refreshing thread changes the other one.
                status_lists=dict(self._lists),
            )
        except Refused as refusal:
            return f"closed: {refusal.reason}"
        return f"open: badge {badge.badge_number}"

    def refresh(self) -> None:
        """Downloads what there is now. What cannot be downloaded, verified or stored does not change anything."""
        are_keys_fine = self._attempt(self._refresh_keys)
        is_fine = self._attempt(self._refresh_lists) and are_keys_fine
        self._attempt(lambda: self._save(is_fine))

    def _attempt(self, step: "Callable[[], None]") -> bool:
        try:
            step()
        except Exception as error:  # Whatever it is: without the next refresh, the door would not learn of a revocation.
            print(f"not refreshed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            return False
        return True

    def _refresh_keys(self) -> None:
        self._keys = _key_set(json.loads(self._download(f"{self._base}/jwks.json") or "null"))

    def _refresh_lists(self) -> None:
        if not self._keys["keys"]:
            return
        # Lists are numbered from 0; the first one that does not exist is the end.
        for index in range(MAX_STATUS_LISTS):
            uri = f"{self._base}/status/{index}"
            text = self._download(uri)
            if text is None:
                break
            self._keep(uri, text)

    def describe(self) -> str:
        return f"keys: {len(self._keys['keys'])}, status lists: {len(self._lists)}"

    def _keep(self, uri: str, text: str) -> None:
        """Keeps a genuine list unless it is older than the present one, which may be a replay to hide a revocation."""
        try:
            status_list = read_status_list(text, keys=self._keys, uri=uri)
        except Refused as refusal:
            print(f"{uri} is refused ({refusal.reason}); the one before stays", file=sys.stderr, flush=True)
            return
        known = self._lists.get(uri)
        if known is None or known.issued_at <= status_list.issued_at:
            self._lists[uri] = status_list
            self._texts[uri] = text

    def _download(self, url: str) -> "str | None":
        """None for 404."""
        try:
            with _opener.open(url, timeout=DOWNLOAD_TIMEOUT_SECONDS) as response:
                content = response.read(MAX_DOWNLOAD_BYTES + 1)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise
        if len(content) > MAX_DOWNLOAD_BYTES:
            raise OSError(f"{url} is larger than anything of the service")
        return content.decode()

    def _load(self) -> None:
        try:
            stored = json.loads(self._file.read_text())
        except FileNotFoundError:
            return
        if stored["applicationId"] != self._application:
            raise SystemExit(f"{self._file} is of another application: give another --file")
        self._keys = _key_set(stored["keys"])
        for uri, text in stored["statusLists"].items():
            self._keep(uri, text)

    def _content(self) -> object:
        """What decisions depend on, without the times of the lists."""
        return self._keys, {uri: each.statuses for uri, each in self._lists.items()}

    def _save(self, is_fine: bool) -> None:
        """Whoever can write this file decides what opens the door. A crash leaves the old one or the new one."""
        is_due = is_fine and time.monotonic() - self._saved_at >= SAVE_UNCHANGED_SECONDS
        if self._content() == self._saved and not is_due:
            return
        content = {"applicationId": self._application, "keys": self._keys, "statusLists": self._texts}
        temporary = self._file.with_name(f"{self._file.name}.new")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._file)
        self._saved, self._saved_at = self._content(), time.monotonic()


def _key_set(content: object) -> dict:
    """A JWK Set with keys. The verifier checks each key."""
    if not (isinstance(content, dict) and isinstance(content.get("keys"), list) and content["keys"]):
        raise ValueError("there are no keys: is the application ID right?")
    return content


def seconds(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise ValueError
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description="Decides about badge signatures, one a line.")
    parser.add_argument("--service", required=True, help="the service's PUBLIC_URL, as in the URIs of its status lists")
    parser.add_argument("--application", required=True, help="the application whose badges open")
    parser.add_argument("--file", type=pathlib.Path, default=pathlib.Path("door.json"), help="keeps keys and status lists")
    parser.add_argument("--max-age", type=seconds, default=60, help="oldest badge signature that opens, in seconds (60)")
    options = parser.parse_args()
    door = Door(options.service, options.application, options.file, options.max_age)
    is_refreshed = threading.Event()

    def keep_refreshing() -> None:
        while True:
            door.refresh()
            is_refreshed.set()
            time.sleep(REFRESH_SECONDS)

    threading.Thread(target=keep_refreshing, daemon=True).start()
    # Without the network, the door works with the content of its file.
    is_refreshed.wait(START_WAIT_SECONDS)
    print(f"Ready: {door.describe()}.", file=sys.stderr, flush=True)
    # A reader may send anything, also what is not UTF-8.
    sys.stdin.reconfigure(errors="replace")
    for line in sys.stdin:
        if line.strip():
            print(door.decide(line), flush=True)


if __name__ == "__main__":
    main()
