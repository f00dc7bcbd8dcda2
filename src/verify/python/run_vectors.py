"""Runs every test vector through badge_verify.py: python3 run_vectors.py [FOLDER]. Exits non-zero on a difference.

The folder has vectors.json and vectors-possession.json. Default: the one above this.
"""

import json
import re
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import cryptography

import badge_verify as verifier


def keys_of(case: dict[str, Any]) -> Any:
    return case["publicKeys"] if "publicKeys" in case else case["publicKey"]


def outcome(case: dict[str, Any]) -> Any:
    """What the verifier makes of a case, in the form of its expectation."""
    optional = {
        "badge_number": "badgeNumber",
        "client_signature": "clientSignature",
        "max_age_seconds": "maxAgeSeconds",
        "status_lists": "statusLists",
        "missing_status_list": "missingStatusList",
        "stale_status_list": "staleStatusList",
    }
    try:
        result = verifier.verify_badge_signature(
            case["jwt"],
            keys=keys_of(case),
            application_id=case["applicationId"],
            now=case["nowSeconds"],
            clock_tolerance_seconds=case["clockToleranceSeconds"],
            **{name: case[member] for name, member in optional.items() if member in case},
        )
    except verifier.Refused as refusal:
        return refusal.reason
    return {
        "sub": result.badge_number,
        "iat": result.issued_at,
        "exp": result.expires_at,
        "client_signature": result.client_signature,
        "keyId": result.key_id,
        "acceptedDespite": result.accepted_despite,
    }


def expectation(case: dict[str, Any]) -> Any:
    if case["expected"] != "ok":
        return case["expected"]
    claims = case["claims"]
    return {
        "sub": claims["sub"],
        "iat": claims["iat"],
        "exp": claims.get("exp"),
        "client_signature": claims["client_signature"],
        "keyId": case["keyId"],
        "acceptedDespite": case.get("acceptedDespite"),
    }


def possession_outcome(case: dict[str, Any]) -> Any:
    """The key that the phone holds, or the reason for the refusal."""
    try:
        badge = verifier.verify_possession(
            case["badgeSignature"],
            case["response"],
            door_id=case["doorId"],
            challenge=case["challenge"],
            keys=case["publicKey"],
            application_id=case["applicationId"],
            now=case["nowSeconds"],
            clock_tolerance_seconds=case["clockToleranceSeconds"],
        )
    except verifier.Refused as refusal:
        return refusal.reason
    return badge.bound_key


def is_challenge_refused(**mistake: Any) -> bool:
    try:
        verifier.create_challenge(**{"door_id": "a", "now": 1_800_000_000.5, **mistake})
    except ValueError:
        return True
    return False


def list_failure(case: dict[str, Any]) -> str:
    [(uri, jwt)] = case["statusLists"].items()
    try:
        verifier.read_status_list(jwt, keys=keys_of(case), uri=uri)
    except verifier.Refused as refusal:
        return refusal.reason
    return "ok"


def with_kept_lists(case: dict[str, Any]) -> dict[str, Any]:
    """The case with lists that were read before."""
    lists = {
        uri: verifier.read_status_list(jwt, keys=keys_of(case), uri=uri) for uri, jwt in case["statusLists"].items()
    }
    return {**case, "statusLists": lists}


def delta_outcome(case: dict[str, Any]) -> Any:
    """The list with the delta applied, or the reason for the refusal."""
    keys = case["publicKeys"]
    try:
        delta = verifier.read_status_delta(case["jwt"], keys=keys, uri=case["uri"])
    except verifier.Refused as refusal:
        return refusal.reason
    applied = verifier.apply_status_delta(
        verifier.read_status_list(case["list"], keys=keys, uri=case["listUri"]), delta
    )
    if applied is None:
        return "does-not-fit"
    entries = range(len(applied.statuses) * 4)
    found = {str(index): verifier.status_at(applied.statuses, index) for index in entries}
    return applied.change, {index: status for index, status in found.items() if status != 0}


def delta_expectation(case: dict[str, Any]) -> Any:
    return (case["change"], case["statuses"]) if case["expected"] == "ok" else case["expected"]


def decoded(card_format: str, bits: str) -> Any:
    try:
        card = verifier.decode_card(card_format, bits)
    except verifier.Refused as refusal:
        return refusal.reason
    return [card.badge_number, card.site_code, card.card_number]


def statuses(encoding: dict[str, Any]) -> Any:
    data = verifier.unpack_statuses(encoding["lst"])
    found = {index: verifier.status_at(data, index, encoding["bits"]) for index in range(encoding["entries"] + 1)}
    return {str(index): status for index, status in found.items() if status != 0}


def checks(vectors: dict[str, Any]) -> Any:
    """Each check's name, what came out, and what must."""
    for case in vectors["cases"]:
        name = f"{case['expected']}: {case['name']}"
        yield name, outcome(case), expectation(case)
        if "statusListFailure" in case:
            yield f"{name}, the list by itself", list_failure(case), case["statusListFailure"]
        elif "statusLists" in case and "status" in case.get("claims", {}):
            yield f"{name}, with lists read before", outcome(with_kept_lists(case)), expectation(case)
    for encoding in vectors["statusListEncodings"]:
        # The index after the last has no entry.
        expected = {**encoding["statuses"], str(encoding["entries"]): None}
        yield f"status list: {encoding['name']}", statuses(encoding), expected
    for delta in vectors["statusDeltas"]:
        yield f"delta: {delta['name']}", delta_outcome(delta), delta_expectation(delta)
    for card in vectors["cards"]:
        card_format, bits = card["format"], card["bits"]
        name = f"card: {card_format} {card['badgeNumber']}"
        yield f"{name}, encoded", verifier.encode_card(card_format, card["badgeNumber"]), bits
        yield f"{name}, hexadecimal", verifier.card_hex(bits), card["hex"]
        parts = [card["badgeNumber"], card["siteCode"], card["cardNumber"]]
        yield f"{name}, decoded", decoded(card_format, bits), parts
    for card in vectors["refusedCards"]:
        yield f"card: {card['format']}, {card['name']}", decoded(card["format"], card["bits"]), card["expected"]
    for number in vectors["unfitNumbers"]:
        name = f"card: {number['format']} for {number['badgeNumber']!r}"
        yield name, verifier.encode_card(number["format"], number["badgeNumber"]), None


def possession_checks(vectors: dict[str, Any]) -> Any:
    phone = vectors["testKeys"]["phone"]["publicJwk"]
    held = verifier.BoundKey(phone["x"], phone["y"])
    for case in vectors["cases"]:
        expected = held if case["expected"] == "ok" else case["expected"]
        yield f"possession: {case['expected']}: {case['name']}", possession_outcome(case), expected


def challenge_checks() -> Any:
    made = [verifier.create_challenge(door_id="gate_2-B", now=1_800_000_000.5) for _ in range(100)]
    form = re.compile(r"badge-possession-v1\.gate_2-B\.[A-Za-z0-9_-]{43}\.1800000010")
    yield "a challenge has its form", [each for each in made if not form.fullmatch(each)], []
    yield "no challenge comes twice", len(set(made)), len(made)
    longest = verifier.create_challenge(door_id="a", now=1_800_000_000, lifetime_seconds=60)
    yield "a challenge lives as long as the door says", longest.rpartition(".")[2], "1800000060"
    yield "the arguments that the mistakes are made in", is_challenge_refused(), False
    mistakes: list[dict[str, Any]] = [{"door_id": text} for text in ("", "a.b", "a b", "\u00e4", "a\n", "a" * 65, None)]
    mistakes += [{"now": time} for time in (float("nan"), float("inf"), -1, 0, 1_800_000_000_000)]
    mistakes += [{"lifetime_seconds": seconds} for seconds in (0, 61, 1.5, float("nan"))]
    for mistake in mistakes:
        yield f"no challenge is made of a mistake: {mistake}", is_challenge_refused(**mistake), True


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent

    def read(name: str) -> dict[str, Any]:
        return json.loads((folder / name).read_text(encoding="utf-8"))

    total = differences = 0
    every = chain(checks(read("vectors.json")), possession_checks(read("vectors-possession.json")), challenge_checks())
    for name, actual, expected in every:
        total += 1
        if actual != expected:
            differences += 1
            print(f"DIFFERENT {name}: {actual!r} instead of {expected!r}")
    version = sys.version.split()[0]
    print(f"Python {version}, cryptography {cryptography.__version__}: {total} checks, {differences} differences")
    return 1 if differences > 0 or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
