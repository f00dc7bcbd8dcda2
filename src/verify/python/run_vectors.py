"""Runs every test vector through badge_verify.py: python3 run_vectors.py [vectors.json]. Exits non-zero on a difference."""

import json
import sys
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


def main() -> int:
    default = Path(__file__).parent.parent / "vectors.json"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    total = differences = 0
    for name, actual, expected in checks(json.loads(path.read_text(encoding="utf-8"))):
        total += 1
        if actual != expected:
            differences += 1
            print(f"DIFFERENT {name}: {actual!r} instead of {expected!r}")
    version = sys.version.split()[0]
    print(f"Python {version}, cryptography {cryptography.__version__}: {total} checks, {differences} differences")
    return 1 if differences > 0 or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
