"""Verifies badge signatures and status lists of the badge distribution service and challenges phones, offline, and reads and
writes card frames.

Copy this file, or pip install its folder. It needs Python 3.9 or later and the package `cryptography`, 38 or later (Debian 12: python3-cryptography).
What is checked, in which order, is specified in the README.md of the TypeScript verifier, whose vectors.json and
vectors-possession.json this file passes: run_vectors.py.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
import secrets
import zlib
from dataclasses import dataclass, replace
from typing import Any, Mapping, Optional, Union

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import load_der_public_key

MAX_BADGE_SIGNATURE_CHARACTERS = 16_384
MAX_RESPONSE_CHARACTERS = 16_384
MAX_STATUS_LIST_CHARACTERS = 524_288
MAX_STATUS_LIST_BYTES = 262_144
DEFAULT_CLOCK_TOLERANCE_SECONDS = 60
DEFAULT_CHALLENGE_LIFETIME_SECONDS = 10
MAX_CHALLENGE_LIFETIME_SECONDS = 60
CHALLENGE_RANDOM_BYTES = 32
STATUS_BITS = 2
MAX_INTEGER = 2**53 - 1

# fullmatch, because $ also matches before a final line feed; [0-9], because \d also matches other scripts.
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_BADGE_NUMBER = re.compile(r"[1-9][0-9]{0,15}")
_BITS = re.compile(r"[01]*")
_LIST_NUMBER = re.compile(r"0|[1-9][0-9]{0,10}")
_DOOR_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CHALLENGE = re.compile(r"badge-possession-v1\.([A-Za-z0-9_-]{1,64})\.[A-Za-z0-9_-]{43}\.([1-9][0-9]{0,11})")

Keys = Union[Mapping[str, Any], str]
"""A JWK Set, as parsed JSON, or one key as base64 of its SPKI DER."""


class Refused(Exception):
    """A refusal; `reason` is one of the README's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class BoundKey:
    """The P-256 public key that a badge is bound to: its coordinates, 32 bytes each, base64url."""

    x: str
    y: str


@dataclass(frozen=True)
class BadgeSignature:
    """What the service attests. Times are seconds since 1970-01-01 UTC."""

    badge_number: str
    issued_at: int
    expires_at: Optional[int]
    client_signature: str
    key_id: str
    accepted_despite: Optional[str] = None
    """What would have been the reason for a refusal, where a policy is "accept"."""
    bound_key: Optional[BoundKey] = None
    """From `cnf`; None if the badge is not bound to a key."""


@dataclass(frozen=True)
class StatusList:
    """A verified status list. Times are seconds since 1970-01-01 UTC."""

    uri: str
    issued_at: int
    expires_at: int
    ttl_seconds: Optional[int]
    statuses: bytes
    change: Optional[int] = None
    """The last change that it contains; None if the list does not say."""


@dataclass(frozen=True)
class StatusDelta:
    """What has changed after `since` and up to `change`. Times are seconds since 1970-01-01 UTC."""

    uri: str
    """The address of the application's lists without the last slash and the number."""
    issued_at: int
    since: int
    change: int
    entries: tuple[tuple[int, int, int], ...]
    """List, index and present status of each badge."""


_UNSET: Any = object()


def verify_badge_signature(
    jwt: str,
    *,
    keys: Keys,
    application_id: str,
    now: float,
    badge_number: Any = _UNSET,
    client_signature: Any = _UNSET,
    max_age_seconds: float = math.inf,
    clock_tolerance_seconds: float = DEFAULT_CLOCK_TOLERANCE_SECONDS,
    status_lists: Optional[Mapping[str, Union[str, StatusList]]] = None,
    missing_status_list: str = "refuse",
    stale_status_list: str = "refuse",
) -> BadgeSignature:
    """Verifies the `signature` of POST /v1/badge/sign. `now` is time.time().

    A badge number or client signature that is given as None matches nothing, so that a failed look-up of the expected value
    does not turn the check off.

    Raises Refused, or ValueError if a number of seconds is not one of at least 0.
    """
    for seconds in (now, clock_tolerance_seconds, 0 if max_age_seconds == math.inf else max_age_seconds):
        # Every comparison with NaN is false: the time checks would refuse nothing.
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
            raise ValueError("now or a number of seconds is not a finite number of at least 0")
    now = math.floor(now)

    payload, key_id = _verify_signed_jwt(jwt, "badge-signature+jwt", MAX_BADGE_SIGNATURE_CHARACTERS, keys)
    # Only now is the payload known to come from the service.
    claims = _parse_object(payload)
    number, audience, signature = claims.get("sub"), claims.get("aud"), claims.get("client_signature")
    if not (isinstance(number, str) and _BADGE_NUMBER.fullmatch(number) and int(number) <= MAX_INTEGER):
        raise Refused("malformed")
    if not (isinstance(audience, str) and isinstance(signature, str)):
        raise Refused("malformed")
    issued_at = _whole_number(claims.get("iat"))
    not_before = _whole_number(claims["nbf"]) if "nbf" in claims else 0
    expires_at = _whole_number(claims["exp"]) if "exp" in claims else None
    status = _parse_status(claims["status"]) if "status" in claims else None
    bound_key = _parse_confirmation(claims["cnf"]) if "cnf" in claims else None

    if audience != application_id:
        raise Refused("wrong-audience")
    if max(issued_at, not_before) > now + clock_tolerance_seconds:
        raise Refused("not-yet-valid")
    if expires_at is not None and now >= expires_at + clock_tolerance_seconds:
        raise Refused("expired")
    if now - issued_at > max_age_seconds + clock_tolerance_seconds:
        raise Refused("too-old")
    if badge_number is not _UNSET and number != badge_number:
        raise Refused("wrong-badge-number")
    if client_signature is not _UNSET and signature != client_signature:
        raise Refused("wrong-client-signature")

    despite = None
    if status is not None:
        policies = {"status-unknown": missing_status_list, "status-stale": stale_status_list}
        despite = _check_status(status, keys, status_lists or {}, policies, now, clock_tolerance_seconds)
    return BadgeSignature(number, issued_at, expires_at, signature, key_id, despite, bound_key)


def create_challenge(
    *, door_id: str, now: float, lifetime_seconds: int = DEFAULT_CHALLENGE_LIFETIME_SECONDS
) -> str:
    """Creates a challenge for one phone, which the door sends and keeps until the response has come. `now` is time.time().

    Raises ValueError if `door_id` is not 1 to 64 characters out of A-Z a-z 0-9 _ -, `now` is not a time, or
    `lifetime_seconds` is not a whole number from 1 to 60.
    """
    if not isinstance(door_id, str) or not _DOOR_ID.fullmatch(door_id):
        raise ValueError("door_id has another form")
    # The upper limit keeps the expiry within the twelve digits of the form: no phone would respond to another.
    if isinstance(now, bool) or not isinstance(now, (int, float)) or not 1 <= now < 1e11:
        raise ValueError("now is not a time in seconds")
    if type(lifetime_seconds) is not int or not 1 <= lifetime_seconds <= MAX_CHALLENGE_LIFETIME_SECONDS:
        raise ValueError("lifetime_seconds is not a whole number from 1 to 60")
    random = _encode_base64url(secrets.token_bytes(CHALLENGE_RANDOM_BYTES))
    return f"badge-possession-v1.{door_id}.{random}.{math.floor(now) + lifetime_seconds}"


def verify_possession(
    badge_signature: str, response: str, *, door_id: str, challenge: str, **expected: Any
) -> BadgeSignature:
    """Verifies a badge signature, and that the phone that presents it holds the key that the badge is bound to: the phone has signed
    this door's `challenge` together with this badge signature.

    Takes everything that verify_badge_signature takes, and makes its checks first. The result always has a `bound_key`.
    Discard the challenge after one verification, whatever its result.

    Raises Refused, or ValueError as verify_badge_signature does.
    """
    badge = verify_badge_signature(badge_signature, **expected)
    if badge.bound_key is None:
        raise Refused("not-bound")
    try:
        key = _import_point(badge.bound_key.x, badge.bound_key.y)
    except ValueError:
        raise Refused("malformed") from None
    try:
        jws = _split_jws(response, MAX_RESPONSE_CHARACTERS)
    except Refused:
        raise Refused("malformed-response") from None
    if "crit" in jws.header:
        raise Refused("malformed-response")
    if jws.header.get("alg") != "ES256":
        raise Refused("wrong-response-algorithm")
    if jws.header.get("typ") != "door-response+jwt":
        raise Refused("wrong-response-type")
    if not jws.is_signed_by(key):
        raise Refused("bad-response-signature")
    try:
        claims = _parse_object(jws.payload)
    except Refused:
        raise Refused("malformed-response") from None
    # A door signs nothing in this protocol; should it ever, its messages have another role.
    if claims.get("role") != "phone":
        raise Refused("wrong-role")
    own = _CHALLENGE.fullmatch(challenge) if isinstance(challenge, str) else None
    if own is None or own[1] != door_id or claims.get("challenge") != challenge:
        raise Refused("wrong-challenge")
    # Too much time is left when the door's clock was set back.
    if not 0 < int(own[2]) - math.floor(expected["now"]) <= MAX_CHALLENGE_LIFETIME_SECONDS:
        raise Refused("expired-challenge")
    if claims.get("application_id") != expected["application_id"]:
        raise Refused("wrong-application")
    presented = hashlib.sha256(badge_signature.encode("ascii")).digest()
    if claims.get("badge_signature_hash") != _encode_base64url(presented):
        raise Refused("wrong-badge-signature")
    return badge


def read_status_list(jwt: str, *, keys: Keys, uri: str) -> StatusList:
    """Verifies a status list. Its times are checked when it is used, so it can be kept. Raises Refused."""
    payload, _ = _verify_signed_jwt(jwt, "statuslist+jwt", MAX_STATUS_LIST_CHARACTERS, keys)
    claims = _parse_object(payload)
    subject, status_list = claims.get("sub"), claims.get("status_list")
    if not (isinstance(subject, str) and isinstance(status_list, dict)):
        raise Refused("malformed")
    issued_at, expires_at = _whole_number(claims.get("iat")), _whole_number(claims.get("exp"))
    ttl_seconds = _whole_number(claims["ttl"]) if "ttl" in claims else None
    if ttl_seconds == 0 or _whole_number(status_list.get("bits")) != STATUS_BITS:
        raise Refused("malformed")
    change = _whole_number(claims["change"]) if "change" in claims else None
    statuses = unpack_statuses(status_list.get("lst"))
    if subject != uri:
        raise Refused("wrong-uri")
    return StatusList(subject, issued_at, expires_at, ttl_seconds, statuses, change)


def read_status_delta(jwt: str, *, keys: Keys, uri: str) -> StatusDelta:
    """Verifies a response of GET /v1/live. The URI is that of the application's lists, without the last slash and the number.
    Raises Refused."""
    payload, _ = _verify_signed_jwt(jwt, "statusdelta+jwt", MAX_STATUS_LIST_CHARACTERS, keys)
    claims = _parse_object(payload)
    subject, entries = claims.get("sub"), claims.get("entries")
    if not (isinstance(subject, str) and isinstance(entries, list)):
        raise Refused("malformed")
    issued_at, since, change = (_whole_number(claims.get(name)) for name in ("iat", "since", "change"))
    if since > change or not all(isinstance(entry, list) and len(entry) == 3 for entry in entries):
        raise Refused("malformed")
    parsed = tuple((_whole_number(number), _whole_number(index), _whole_number(status)) for number, index, status in entries)
    if any(status >= 1 << STATUS_BITS for _, _, status in parsed):
        raise Refused("malformed")
    if subject != uri:
        raise Refused("wrong-uri")
    return StatusDelta(subject, issued_at, since, change, parsed)


def apply_status_delta(status_list: StatusList, delta: StatusDelta) -> Optional[StatusList]:
    """The list with the delta's changes, or the list itself if it contains them already. None if the delta does not fit: it is for
    another application, the list lacks earlier changes, or the list has no such entry. Then download the list again."""
    uri, _, number = status_list.uri.rpartition("/")
    if uri != delta.uri or not _LIST_NUMBER.fullmatch(number):
        return None
    if status_list.change is None or status_list.change < delta.since:
        return None
    if status_list.change >= delta.change:
        return status_list
    statuses = bytearray(status_list.statuses)
    entries_per_byte = 8 // STATUS_BITS
    for of_list, index, status in delta.entries:
        if of_list != int(number):
            continue
        place, shift = index // entries_per_byte, index % entries_per_byte * STATUS_BITS
        if place >= len(statuses):
            return None
        statuses[place] = statuses[place] & ~((1 << STATUS_BITS) - 1 << shift) | status << shift
    return replace(status_list, change=delta.change, statuses=bytes(statuses))


def unpack_statuses(lst: Any) -> bytes:
    """The bytes of `lst`: base64url of exactly one zlib stream, of at most 262,144 bytes. Raises Refused."""
    stream = zlib.decompressobj()
    try:
        # The limit keeps a small list from filling the memory.
        statuses = stream.decompress(_decode_base64url(lst), MAX_STATUS_LIST_BYTES + 1)
    except zlib.error:
        raise Refused("malformed") from None
    if len(statuses) > MAX_STATUS_LIST_BYTES or not stream.eof or stream.unused_data:
        raise Refused("malformed")
    return statuses


def status_at(statuses: bytes, index: int, bits: int = STATUS_BITS) -> Optional[int]:
    """The entry at an index, from the least significant bit of each byte; None beyond the end."""
    entries_per_byte = 8 // bits
    if index // entries_per_byte >= len(statuses):
        return None
    return statuses[index // entries_per_byte] >> (index % entries_per_byte * bits) & (1 << bits) - 1


def _check_status(
    status: tuple[str, int],
    keys: Keys,
    status_lists: Mapping[str, Union[str, StatusList]],
    policies: Mapping[str, str],
    now: int,
    tolerance: float,
) -> Optional[str]:
    """Returns what is accepted despite a doubt, or None. Raises Refused."""
    uri, index = status

    def doubt(reason: str) -> str:
        if policies[reason] != "accept":
            raise Refused(reason)
        return reason

    given = status_lists.get(uri)
    if given is None:
        return doubt("status-unknown")
    try:
        status_list = given if isinstance(given, StatusList) else read_status_list(given, keys=keys, uri=uri)
    except Refused:
        raise Refused("status-unknown") from None
    if status_list.uri != uri or status_list.issued_at > now + tolerance:
        raise Refused("status-unknown")
    value = status_at(status_list.statuses, index)
    if value != 0:
        # What a stale list says still counts. 3 is not used.
        raise Refused({1: "revoked", 2: "suspended"}.get(-1 if value is None else value, "status-unknown"))
    if now >= status_list.expires_at + tolerance:
        return doubt("status-stale")
    return None


def _parse_status(status: Any) -> tuple[str, int]:
    reference = status.get("status_list") if isinstance(status, dict) else None
    if not isinstance(reference, dict) or not isinstance(reference.get("uri"), str):
        raise Refused("malformed")
    return reference["uri"], _whole_number(reference.get("idx"))


def _parse_confirmation(cnf: Any) -> BoundKey:
    """A `cnf` that is not understood must not make a bound badge look unbound. Raises Refused."""
    jwk = cnf.get("jwk") if isinstance(cnf, dict) else None
    if not isinstance(jwk, dict) or jwk.get("kty") != "EC" or jwk.get("crv") != "P-256":
        raise Refused("malformed")
    x, y = jwk.get("x"), jwk.get("y")
    if len(_decode_base64url(x)) != 32 or len(_decode_base64url(y)) != 32:
        raise Refused("malformed")
    return BoundKey(x, y)


@dataclass(frozen=True)
class _Jws:
    """A compact JWS, not yet verified. The payload is not parsed until it is."""

    header: dict[str, Any]
    payload: bytes
    signature: bytes
    signing_input: bytes

    def is_signed_by(self, key: ec.EllipticCurvePublicKey) -> bool:
        if len(self.signature) != 64:
            return False
        r, s = int.from_bytes(self.signature[:32], "big"), int.from_bytes(self.signature[32:], "big")
        try:
            key.verify(utils.encode_dss_signature(r, s), self.signing_input, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


def _split_jws(jws: Any, max_characters: int) -> _Jws:
    if not isinstance(jws, str) or len(jws) > max_characters:
        raise Refused("malformed")
    parts = jws.split(".")
    if len(parts) != 3:
        raise Refused("malformed")
    header, payload, signature = (_decode_base64url(part) for part in parts)
    return _Jws(_parse_object(header), payload, signature, jws[: jws.rindex(".")].encode("ascii"))


def _verify_signed_jwt(jwt: Any, kind: str, max_characters: int, keys: Keys) -> tuple[bytes, str]:
    """Returns the payload, not parsed, and the key's ID."""
    jws = _split_jws(jwt, max_characters)
    if "crit" in jws.header:
        raise Refused("malformed")
    # Decided before a key is chosen, so that a JWT cannot choose how it is verified.
    if jws.header.get("alg") != "ES256":
        raise Refused("wrong-algorithm")
    if jws.header.get("typ") != kind:
        raise Refused("wrong-type")
    key_id = jws.header.get("kid")
    if not isinstance(key_id, str):
        raise Refused("malformed")
    try:
        key = _import_spki(keys) if isinstance(keys, str) else _import_from_set(keys, key_id)
    except (Refused, ValueError, UnsupportedAlgorithm):
        key = None
    if key is None:
        raise Refused("unknown-key")
    if not jws.is_signed_by(key):
        raise Refused("bad-signature")
    return jws.payload, key_id


def _import_spki(public_key: str) -> Optional[ec.EllipticCurvePublicKey]:
    der = base64.b64decode(public_key, validate=True)
    # Stray bits in the last character pass the decoder.
    if base64.b64encode(der).decode("ascii") != public_key:
        return None
    key = load_der_public_key(der)
    return key if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1) else None


def _import_from_set(keys: Mapping[str, Any], key_id: str) -> Optional[ec.EllipticCurvePublicKey]:
    candidates = keys.get("keys")
    for jwk in candidates if isinstance(candidates, (list, tuple)) else ():
        if not isinstance(jwk, dict) or jwk.get("kid") != key_id or jwk.get("kty") != "EC" or jwk.get("crv") != "P-256":
            continue
        if jwk.get("use", "sig") != "sig" or jwk.get("alg", "ES256") != "ES256":
            continue
        operations = jwk.get("key_ops", ["verify"])
        if not isinstance(operations, list) or "verify" not in operations:
            continue
        if not isinstance(jwk.get("x"), str) or not isinstance(jwk.get("y"), str):
            continue
        return _import_point(jwk["x"], jwk["y"])
    return None


def _import_point(x_text: str, y_text: str) -> ec.EllipticCurvePublicKey:
    """Raises ValueError for a point off the curve, Refused for coordinates of another form."""
    x, y = _decode_base64url(x_text), _decode_base64url(y_text)
    if len(x) != 32 or len(y) != 32:
        raise Refused("malformed")
    point = ec.EllipticCurvePublicNumbers(int.from_bytes(x, "big"), int.from_bytes(y, "big"), ec.SECP256R1())
    return point.public_key()


def _decode_base64url(text: Any) -> bytes:
    """Without padding, white space or stray bits in the last character: each value has exactly one text."""
    if not isinstance(text, str) or not _BASE64URL.fullmatch(text):
        raise Refused("malformed")
    try:
        value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise Refused("malformed") from None
    if _encode_base64url(value) != text:
        raise Refused("malformed")
    return value


def _encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse_object(data: bytes) -> dict[str, Any]:
    """A JSON object in UTF-8. Numbers are doubles, as in JavaScript; NaN and Infinity, which Python adds, are refused."""
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_int=float, parse_float=float, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Refused("malformed") from None
    if not isinstance(value, dict):
        raise Refused("malformed")
    return value


def _whole_number(value: Any) -> int:
    """A parsed number from 0 to 2^53 - 1. Raises Refused."""
    if not isinstance(value, float) or not 0 <= value <= MAX_INTEGER or value != math.floor(value):
        raise Refused("malformed")
    return int(value)


# Card formats. Bits are counted from 1; a later parity bit may cover an earlier one.


@dataclass(frozen=True)
class _CardLayout:
    bits: int
    site_code: Optional[tuple[int, int]]
    card_number: tuple[int, int]
    parity: tuple[tuple[int, str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Card:
    """`site_code` is None in a format that has none."""

    badge_number: str
    site_code: Optional[int]
    card_number: int


def _span(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


def _two_of_three(first: int, last: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(first, last + 1) if (bit - first) % 3 != 2)


_H1030X_PARITY = ((1, "even", _span(2, 19)), (37, "odd", _span(19, 36)))

CARD_LAYOUTS: Mapping[str, _CardLayout] = {
    "h10301": _CardLayout(26, (2, 9), (10, 25), ((1, "even", _span(2, 13)), (26, "odd", _span(14, 25)))),
    "h10302": _CardLayout(37, None, (2, 36), _H1030X_PARITY),
    "h10304": _CardLayout(37, (2, 17), (18, 36), _H1030X_PARITY),
    "corporate1000": _CardLayout(
        35,
        (3, 14),
        (15, 34),
        ((2, "even", _two_of_three(3, 34)), (35, "odd", _two_of_three(2, 33)), (1, "odd", _span(2, 35))),
    ),
    "corporate1000_48": _CardLayout(
        48,
        (3, 24),
        (25, 47),
        ((2, "even", _two_of_three(4, 47)), (48, "odd", _two_of_three(3, 46)), (1, "odd", _span(2, 48))),
    ),
}


def encode_card(card_format: str, badge_number: str) -> Optional[str]:
    """The bits of a badge number's card, as text of 0 and 1; None if the number does not fit the format."""
    layout = CARD_LAYOUTS[card_format]
    if not _BADGE_NUMBER.fullmatch(badge_number):
        return None
    site_code, card_number = divmod(int(badge_number), 1 << _width(layout.card_number))
    sites = 1 if layout.site_code is None else 1 << _width(layout.site_code)
    if site_code >= sites or card_number == 0:
        return None
    frame = ["0"] * layout.bits
    if layout.site_code is not None:
        _write(frame, layout.site_code, site_code)
    _write(frame, layout.card_number, card_number)
    for bit, kind, covers in layout.parity:
        frame[bit - 1] = _parity(frame, kind, covers)
    return "".join(frame)


def decode_card(card_format: str, bits: str) -> Card:
    """Reads the bits of a card. Raises Refused: wrong-length, wrong-parity or unused-number."""
    layout = CARD_LAYOUTS[card_format]
    if len(bits) != layout.bits or not _BITS.fullmatch(bits):
        raise Refused("wrong-length")
    frame = list(bits)
    if any(frame[bit - 1] != _parity(frame, kind, covers) for bit, kind, covers in layout.parity):
        raise Refused("wrong-parity")
    site_code = None if layout.site_code is None else _read(frame, layout.site_code)
    card_number = _read(frame, layout.card_number)
    if card_number == 0:
        raise Refused("unused-number")
    number = ((site_code or 0) << _width(layout.card_number)) + card_number
    return Card(str(number), site_code, card_number)


def card_hex(bits: str) -> str:
    """The bits as one number in hexadecimal."""
    return f"{int(bits, 2):0{-(-len(bits) // 4)}X}"


def _width(field: tuple[int, int]) -> int:
    return field[1] - field[0] + 1


def _write(frame: list[str], field: tuple[int, int], value: int) -> None:
    frame[field[0] - 1 : field[1]] = f"{value:0{_width(field)}b}"


def _read(frame: list[str], field: tuple[int, int]) -> int:
    return int("".join(frame[field[0] - 1 : field[1]]), 2)


def _parity(frame: list[str], kind: str, covers: tuple[int, ...]) -> str:
    ones = sum(frame[bit - 1] == "1" for bit in covers)
    return str((ones + (kind == "odd")) % 2)
