// Proofs and door responses by a key of the Secure Enclave: docs/bound-badges.md. Not compiled here.
import CryptoKit
import Foundation
import Security

struct BadgeKey {
    private let key: SecureEnclave.P256.Signing.PrivateKey

    struct KeychainError: Error { let status: OSStatus }
    struct NotAChallenge: Error {}

    /// Loads the key, or makes it the first time.
    init(name: String = "badge-key") throws {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: name,
            kSecAttrAccount as String: name,
        ]
        var query = item
        query[kSecReturnData as String] = true
        var found: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &found)
        if status == errSecSuccess, let data = found as? Data {
            key = try SecureEnclave.P256.Signing.PrivateKey(dataRepresentation: data)
            return
        }
        // Making another key because the keychain is locked would lose the badge.
        guard status == errSecItemNotFound else { throw KeychainError(status: status) }
        key = try SecureEnclave.P256.Signing.PrivateKey()
        var addition = item
        addition[kSecValueData as String] = key.dataRepresentation
        addition[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
        let added = SecItemAdd(addition as CFDictionary, nil)
        guard added == errSecSuccess else { throw KeychainError(status: added) }
    }

    /// The value of the `DPoP` header. `body` is exactly what is sent, `url` has no query.
    func proof(
        method: String, url: String, applicationId: String, udid: String, body: Data, nonce: String?
    ) throws -> String {
        var claims: [String: Any] = [
            "aud": applicationId,
            "jti": UUID().uuidString,
            "htm": method,
            "htu": url,
            "iat": Int(Date().timeIntervalSince1970),
            "ath": hash(Data(udid.utf8)),
            "body_hash": hash(body),
        ]
        if let nonce = nonce { claims["nonce"] = nonce }
        let point = key.publicKey.rawRepresentation  // x and y, 32 bytes each
        let jwk = ["kty": "EC", "crv": "P-256", "x": base64Url(point.prefix(32)), "y": base64Url(point.suffix(32))]
        return try jws(header: ["typ": "dpop+jwt", "alg": "ES256", "jwk": jwk], claims: claims)
    }

    func doorResponse(challenge: String, applicationId: String, badgeSignature: String) throws -> String {
        // \z, because $ also matches before a final line feed.
        let form = #"\Abadge-possession-v1\.[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{43}\.[1-9][0-9]{0,11}\z"#
        guard challenge.range(of: form, options: .regularExpression) != nil else { throw NotAChallenge() }
        let claims = [
            "role": "phone",
            "challenge": challenge,
            "application_id": applicationId,
            "badge_signature_hash": hash(Data(badgeSignature.utf8)),
        ]
        return try jws(header: ["typ": "door-response+jwt", "alg": "ES256"], claims: claims)
    }

    private func jws(header: [String: Any], claims: [String: Any]) throws -> String {
        let parts = try [header, claims].map { base64Url(try JSONSerialization.data(withJSONObject: $0)) }
        let input = parts.joined(separator: ".")
        // Hashes with SHA-256; the raw representation is r and s, 32 bytes each.
        let signature = try key.signature(for: Data(input.utf8)).rawRepresentation
        return input + "." + base64Url(signature)
    }

    private func hash(_ data: Data) -> String { base64Url(Data(SHA256.hash(data: data))) }

    private func base64Url(_ data: Data) -> String {
        data.base64EncodedString()
            .replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }
}
