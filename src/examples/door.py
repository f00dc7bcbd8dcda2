"""A door to start from, in Python (3.9 or later, with the package `cryptography`). It downloads the application's keys and status
lists every 30 seconds, stores them, and decides about badge signatures, one a line, without asking the service:

    python3 src/examples/door.py --service https://badges.example --application app_…

With a secret of its own (--secret, or DOOR_SECRET) it learns of every change of status within two seconds.

Without the network it uses what it has stored in its file, also after a restart. `badge_verify.py` must be importable: it is
beside this file, in src/verify/python, or on PYTHONPATH.
"""

import argparse
import json
import math
import os
import pathlib
import random
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import replace
from typing import Callable

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "verify" / "python"))

from badge_verify import (  # noqa: E402
    Refused,
    StatusDelta,
    StatusList,
    apply_status_delta,
    read_status_delta,
    read_status_list,
    verify_badge_signature,
)

# Half of the `ttl` of status lists, so that a revoked badge is refused within two minutes.
REFRESH_SECONDS = 30
START_WAIT_SECONDS = 3
# Maximum difference between the clocks of service and door. It is less if --max-age is less.
CLOCK_TOLERANCE_SECONDS = 60
# Lists whose content has not changed are written only this often, because flash memory wears out.
SAVE_UNCHANGED_SECONDS = 600
# More than a cached list can be older than what the door has: it is at most half a minute old.
LATER_SECONDS = 60
DOWNLOAD_TIMEOUT_SECONDS = 10
# The service responds after 50 seconds at the latest.
LIVE_TIMEOUT_SECONDS = 65
# After a refusal: another door has this secret, or the secret is wrong, so there is no hurry.
REFUSED_WAIT_SECONDS = 60
# While cached lists are older than the changes.
LISTS_WAIT_SECONDS = 10
MAX_RETRY_SECONDS = 60
# Deltas are kept until all lists contain them.
MAX_DELTAS = 1000
# More than any list or key set of the service.
MAX_DOWNLOAD_BYTES = 524_288
# Over a hundred million badges.
MAX_STATUS_LISTS = 1000


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: another host does not speak for the service."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)
# Cloudflare's Browser Integrity Check refuses urllib's own name.
_opener.addheaders = [("User-Agent", "badge-door")]


def _say(text: str) -> None:
    """A message that cannot be written, on a full disk for example, must not end the thread that refreshes or listens."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass


class Door:
    def __init__(
        self, service: str, application: str, file: pathlib.Path, oldest_seconds: float, secret: "str | None"
    ) -> None:
        self._live = f"{service.rstrip('/')}/v1/live"
        self._secret = secret
        self._base = f"{service.rstrip('/')}/v1/applications/{application}"
        self._application = application
        self._file = file
        self._oldest_seconds = oldest_seconds
        self._tolerance_seconds = min(CLOCK_TOLERANCE_SECONDS, oldest_seconds)
        self._keys: dict = {"keys": []}
        self._lists: "dict[str, StatusList]" = {}
        # As they were downloaded, for the file.
        self._texts: "dict[str, str]" = {}
        # The last change of each list, as it was downloaded.
        self._changes: "dict[str, int]" = {}
        # Deltas since the oldest list, oldest first, as received and as read.
        self._deltas: "list[tuple[str, StatusDelta]]" = []
        # Guards the fields above, which two threads change.
        self._lock = threading.RLock()
        try:
            self._load()
        except Exception as error:
            _say(f"{file} is ignored: {type(error).__name__}: {error}")
        # So the content of the file is not written again at once.
        self._saved = self._content()
        self._saved_at = -math.inf
        # Whether it was printed that there is no status list to start from.
        self._is_list_missing = False

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
        """Downloads keys and lists. What cannot be downloaded, verified or stored changes nothing."""
        are_keys_fine = self._attempt(self._refresh_keys)
        is_fine = self._attempt(self._refresh_lists) and are_keys_fine
        with self._lock:
            self._attempt(lambda: self._save(is_fine))

    def _attempt(self, step: "Callable[[], None]") -> bool:
        try:
            step()
        except Exception as error:  # Any error: without the next refresh, the door would not learn of a revocation.
            _say(f"not refreshed: {type(error).__name__}: {error}")
            return False
        return True

    def _refresh_keys(self) -> None:
        self._keys = _key_set(json.loads(self._download(f"{self._base}/jwks.json") or "null"))

    def _refresh_lists(self) -> None:
        if not self._keys["keys"]:
            return
        # Lists are numbered from 0 to the first one that does not exist.
        count = 0
        while count < MAX_STATUS_LISTS:
            uri = f"{self._base}/status/{count}"
            text = self._download(uri)
            if text is None:
                break
            self._keep(uri, text)
            count += 1
        with self._lock:
            # A list that is not kept may lack any of them.
            if len(self._lists) >= count:
                self._deltas = [each for each in self._deltas if self._is_needed(each[1])]

    def _is_needed(self, delta: StatusDelta) -> bool:
        """Whether a list, as it was downloaded, may lack the delta's changes."""
        return any(
            delta.change > self._changes[uri] and each.issued_at < delta.issued_at + LATER_SECONDS
            for uri, each in self._lists.items()
        )

    def listen(self) -> None:
        """Receives every change of status at once, for ever. The lists must still be refreshed, because they limit how long the door
        may work without the service."""
        failures = 0
        while True:
            try:
                seconds = self._listen_once()
                failures = 0
            except urllib.error.HTTPError as error:
                failures += 1
                refused = error.code in (401, 404, 429)
                seconds = REFUSED_WAIT_SECONDS if refused else _retry_seconds(failures)
                _say(f"not connected: HTTP {error.code}; the lists are used")
            except Exception as error:  # Any error: without the next call, the door would receive no more changes.
                failures += 1
                seconds = _retry_seconds(failures)
                _say(f"not connected: {type(error).__name__}: {error}; the lists are used")
            # Jitter, so that not all doors call at once after a restart of the service.
            time.sleep(seconds * random.uniform(0.5, 1))

    def _listen_once(self) -> float:
        """Returns after how many seconds to call again."""
        have = self._last_change()
        if have is None:
            if not self._is_list_missing and not self._lists:
                self._is_list_missing = True
                question = "does the application publish them (--status-list)?"
                _say(f"not connected: there are no status lists; {question}")
            return 1
        self._is_list_missing = False
        headers = {"applicationid": self._application, "applicationsecret": self._secret or ""}
        request = urllib.request.Request(f"{self._live}?have={have}", headers=headers)
        with _opener.open(request, timeout=LIVE_TIMEOUT_SECONDS) as response:
            text = response.read(MAX_DOWNLOAD_BYTES + 1).decode()
        try:
            delta = read_status_delta(text, keys=self._keys, uri=f"{self._base}/status")
        except Refused as refusal:
            # A new key may sign before the next refresh (`key rotate --now`).
            if refusal.reason == "unknown-key":
                self._attempt(self._refresh_keys)
            raise
        with self._lock:
            applied = {uri: apply_status_delta(each, delta) for uri, each in self._lists.items()}
            if delta.since <= have <= delta.change and None not in applied.values():
                self._lists = {uri: each for uri, each in applied.items() if each is not None}
                if delta.change > have:
                    self._deltas = [*self._deltas, (text, delta)][-MAX_DELTAS:]
                if delta.entries:
                    _say(f"change {delta.change}: {len(delta.entries)} badges have another status")
                    self._attempt(lambda: self._save(True))
                # An application without changes responds at once.
                return LISTS_WAIT_SECONDS if delta.change == 0 else 0
            _say(f"changes up to {delta.change}: the lists are needed again")
            if delta.change < have:
                # They may have changes that the service has lost: the next lists replace them.
                self._deltas = []
                self._lists = {uri: replace(each, change=None) for uri, each in self._lists.items()}
        self.refresh()
        last = self._last_change() or 0
        # A cache may still have the lists of before a restore.
        return LISTS_WAIT_SECONDS if last < delta.since or delta.change < have <= last else 0

    def _last_change(self) -> "int | None":
        """The last change that all lists have; None if there is no list, or one does not name it."""
        with self._lock:
            changes = [each.change for each in self._lists.values()]
        known = [change for change in changes if change is not None]
        return min(known) if known and len(known) == len(changes) else None

    def describe(self) -> str:
        return f"keys: {len(self._keys['keys'])}, status lists: {len(self._lists)}"

    def _keep(self, uri: str, text: str) -> None:
        """Keeps a genuine list, unless it could hide a known revocation. It is refused if its `iat` is older than the present list's.
        It is also refused if its `change`, with the deltas, is lower than what is known: caches and data centres have lists of nearly
        the same time with different content. Only a list a minute later than everything known may have a lower one: the service has
        lost changes (contract section 21)."""
        try:
            status_list = read_status_list(text, keys=self._keys, uri=uri)
        except Refused as refusal:
            _say(f"{uri} is refused ({refusal.reason}); the one before stays")
            return
        with self._lock:
            downloaded = status_list.change
            known = self._lists.get(uri)
            if known is not None and known.issued_at > status_list.issued_at:
                return
            present = [each for each in (known, self._deltas[-1][1] if self._deltas else None) if each is not None]
            if any(status_list.issued_at < each.issued_at + LATER_SECONDS for each in present):
                for _, delta in self._deltas:
                    status_list = apply_status_delta(status_list, delta) or status_list
                if any((status_list.change or 0) < (each.change or 0) for each in present):
                    if known is None:
                        problem = "lacks changes that are known, so it is not used until a newer one is downloaded"
                        _say(f"{uri} {problem}")
                    return
            # A new dictionary, because the deciding thread copies the present one.
            self._lists = {**self._lists, uri: status_list}
            self._texts[uri] = text
            self._changes[uri] = downloaded or 0

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
        for text in stored.get("deltas", []):
            # If it is refused, no list is used: without its changes, one could open for a revoked badge.
            self._deltas.append((text, read_status_delta(text, keys=self._keys, uri=f"{self._base}/status")))
        for uri, text in stored["statusLists"].items():
            # A list of the service's former address would never be current again.
            if uri.startswith(f"{self._base}/status/"):
                self._keep(uri, text)

    def _content(self) -> object:
        """What decisions depend on, without the times of the lists."""
        return self._keys, {uri: each.statuses for uri, each in self._lists.items()}

    def _save(self, is_fine: bool) -> None:
        """Anybody who can write this file decides what opens the door. A crash leaves the old file or the new one."""
        is_due = is_fine and time.monotonic() - self._saved_at >= SAVE_UNCHANGED_SECONDS
        if self._content() == self._saved and not is_due:
            return
        with self._lock:
            deltas = [text for text, _ in self._deltas]
            content = {"applicationId": self._application, "keys": self._keys, "statusLists": dict(self._texts), "deltas": deltas}
        # Two doors may share a file.
        temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}.new")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._file)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            # Otherwise a power cut could bring the old file back.
            os.fsync(folder)
        finally:
            os.close(folder)
        self._saved, self._saved_at = self._content(), time.monotonic()


def _retry_seconds(failures: int) -> float:
    # A power of two overflows after 1,023 failures.
    return min(2.0 ** min(failures, 10), MAX_RETRY_SECONDS)


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


def secret(text: str) -> str:
    """Without this check, the error of each call would show it in the log."""
    if not all(" " <= character <= "~" for character in text.strip()):
        # The message of any other error would contain the secret.
        raise argparse.ArgumentTypeError("this is not one line of printable ASCII characters")
    return text.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description="Decides about badge signatures, one a line.")
    parser.add_argument("--service", required=True, help="the service's PUBLIC_URL, as in the URIs of its status lists")
    parser.add_argument("--application", required=True, help="the application whose badges open")
    parser.add_argument("--file", type=pathlib.Path, help="keeps keys and status lists (door-ID.json)")
    parser.add_argument("--max-age", type=seconds, default=60, help="oldest badge signature that opens, in seconds (60)")
    secret_help = "the door's own: it learns of changes at once"
    parser.add_argument("--secret", type=secret, default=os.environ.get("DOOR_SECRET"), help=secret_help)
    options = parser.parse_args()
    file = options.file or pathlib.Path(f"door-{options.application}.json")
    door = Door(options.service, options.application, file, options.max_age, options.secret)
    is_refreshed = threading.Event()

    def keep_refreshing() -> None:
        while True:
            door.refresh()
            is_refreshed.set()
            time.sleep(REFRESH_SECONDS)

    threading.Thread(target=keep_refreshing, daemon=True).start()
    # Without the network, the door works with the content of its file.
    is_refreshed.wait(START_WAIT_SECONDS)
    if options.secret:
        threading.Thread(target=door.listen, daemon=True).start()
    _say(f"Ready: {door.describe()}.")
    # A reader may send anything, even invalid UTF-8.
    sys.stdin.reconfigure(errors="replace")
    for line in sys.stdin:
        if line.strip():
            print(door.decide(line), flush=True)


if __name__ == "__main__":
    main()
