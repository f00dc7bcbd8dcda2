// Proofs and door responses by a key of the Android Keystore: docs/bound-badges.md. Not compiled here.
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import android.security.keystore.StrongBoxUnavailableException
import android.util.Base64
import java.math.BigInteger
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.MessageDigest
import java.security.PrivateKey
import java.security.SecureRandom
import java.security.Signature
import java.security.interfaces.ECPublicKey
import java.security.spec.ECGenParameterSpec
import org.json.JSONObject

/** Signing takes up to a second in a StrongBox: call it off the main thread. */
class BadgeKey(private val alias: String = "badge-key") {
    private val store = KeyStore.getInstance("AndroidKeyStore").apply { load(null) }

    init {
        if (!store.containsAlias(alias)) {
            try {
                generate(inStrongBox = true)
            } catch (unavailable: StrongBoxUnavailableException) {
                generate(inStrongBox = false)
            }
        }
    }

    /** The value of the `DPoP` header. `body` is exactly what is sent, `url` has no query. */
    fun proof(method: String, url: String, applicationId: String, udid: String, body: ByteArray, nonce: String?): String {
        val claims = JSONObject()
            .put("aud", applicationId)
            .put("jti", base64Url(ByteArray(16).also { SecureRandom().nextBytes(it) }))
            .put("htm", method)
            .put("htu", url)
            .put("iat", System.currentTimeMillis() / 1000)
            .put("ath", base64Url(sha256(udid.toByteArray())))
            .put("body_hash", base64Url(sha256(body)))
            .putOpt("nonce", nonce)
        return jws(JSONObject().put("typ", "dpop+jwt").put("alg", "ES256").put("jwk", publicJwk()), claims)
    }

    fun doorResponse(challenge: String, applicationId: String, badgeSignature: String): String {
        require(CHALLENGE.matches(challenge)) { "not a challenge of a door" }
        val claims = JSONObject()
            .put("role", "phone")
            .put("challenge", challenge)
            .put("application_id", applicationId)
            .put("badge_signature_hash", base64Url(sha256(badgeSignature.toByteArray())))
        return jws(JSONObject().put("typ", "door-response+jwt").put("alg", "ES256"), claims)
    }

    private fun generate(inStrongBox: Boolean) {
        val spec = KeyGenParameterSpec.Builder(alias, KeyProperties.PURPOSE_SIGN)
            .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
            .setDigests(KeyProperties.DIGEST_SHA256)
            .setIsStrongBoxBacked(inStrongBox)
            .build()
        val generator = KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, "AndroidKeyStore")
        generator.initialize(spec)
        generator.generateKeyPair()
    }

    private fun publicJwk(): JSONObject {
        val point = (store.getCertificate(alias).publicKey as ECPublicKey).w
        return JSONObject()
            .put("kty", "EC")
            .put("crv", "P-256")
            .put("x", base64Url(point.affineX.to32Bytes()))
            .put("y", base64Url(point.affineY.to32Bytes()))
    }

    private fun jws(header: JSONObject, claims: JSONObject): String {
        val input = base64Url(header.toString().toByteArray()) + "." + base64Url(claims.toString().toByteArray())
        val der = Signature.getInstance("SHA256withECDSA").run {
            initSign(store.getKey(alias, null) as PrivateKey)
            update(input.toByteArray())
            sign()
        }
        // SEQUENCE { INTEGER r, INTEGER s }, each with one byte of tag and one of length.
        val endOfR = 4 + der[3].toInt()
        val r = BigInteger(der.copyOfRange(4, endOfR))
        val s = BigInteger(der.copyOfRange(endOfR + 2, der.size))
        return input + "." + base64Url(r.to32Bytes() + s.to32Bytes())
    }

    private companion object {
        val CHALLENGE = Regex("badge-possession-v1\\.[A-Za-z0-9_-]{1,64}\\.[A-Za-z0-9_-]{43}\\.[1-9][0-9]{0,11}")

        fun sha256(bytes: ByteArray): ByteArray = MessageDigest.getInstance("SHA-256").digest(bytes)

        fun base64Url(bytes: ByteArray): String =
            Base64.encodeToString(bytes, Base64.URL_SAFE or Base64.NO_PADDING or Base64.NO_WRAP)

        /** Without the sign byte that BigInteger adds, and with the zeros that it leaves out. */
        fun BigInteger.to32Bytes(): ByteArray {
            val bytes = toByteArray().takeLast(32)
            return ByteArray(32 - bytes.size) + bytes.toByteArray()
        }
    }
}
