// Package badgeverify verifies badge signatures and status lists of the badge distribution service and challenges phones,
// offline, and reads and writes card frames.
//
// Copy this file, or go get the module of its folder. It needs Go 1.19 or later and the standard library alone. What is checked, in which order, is specified in
// the README.md of the TypeScript verifier, whose vectors.json and vectors-possession.json this file passes: go test.
package badgeverify

import (
	"bytes"
	"compress/zlib"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxBadgeSignatureCharacters = 16_384
	maxResponseCharacters       = 16_384
	maxStatusListCharacters     = 524_288
	maxStatusListBytes          = 262_144
	maxChallengeLifetimeSeconds = 60
	challengeRandomBytes        = 32
	statusBits                  = 2
	maxInteger                  = 1<<53 - 1
)

// DefaultClockToleranceSeconds is how far the clocks of service and verifier should be allowed to differ.
const DefaultClockToleranceSeconds = 60

// DefaultChallengeLifetimeSeconds is how long a phone should be allowed to take for its response.
const DefaultChallengeLifetimeSeconds = 10

// Refused is a refusal; its text is one of the README's reasons.
type Refused string

func (reason Refused) Error() string { return string(reason) }

// Keys are the application's public keys: a JWK Set's entries as parsed JSON, or, if PublicKey is not empty, one key as
// base64 of its SPKI DER.
type Keys struct {
	Set       []any
	PublicKey string
}

// Policy says what to do with a badge whose status list is missing or stale.
type Policy int

const (
	// Refuse is the default.
	Refuse Policy = iota
	// Accept lets the badge pass; AcceptedDespite says why it would have been refused.
	Accept
)

// Expectations are what a badge signature must match. Times are seconds since 1970-01-01 UTC.
type Expectations struct {
	Keys          Keys
	ApplicationID string
	NowSeconds    float64
	// BadgeNumber and ClientSignature are not checked if they are nil.
	BadgeNumber     *string
	ClientSignature *string
	// MaxAgeSeconds is not checked if it is nil.
	MaxAgeSeconds *float64
	// ClockToleranceSeconds has no default: DefaultClockToleranceSeconds is a good value.
	ClockToleranceSeconds float64
	// StatusLists has by URI what ReadStatusList returned: nil for a list that it refused, which is not a missing one.
	StatusLists       map[string]*StatusList
	MissingStatusList Policy
	StaleStatusList   Policy
}

// BadgeSignature is what the service attests. Times are seconds since 1970-01-01 UTC.
type BadgeSignature struct {
	BadgeNumber string
	IssuedAt    int64
	// ExpiresAt is nil when the application has no signature lifetime.
	ExpiresAt       *int64
	ClientSignature string
	KeyID           string
	// AcceptedDespite is empty, or status-unknown or status-stale where a policy is Accept.
	AcceptedDespite string
	// BoundKey is nil if the badge is not bound to a key.
	BoundKey *BoundKey
}

// BoundKey is the P-256 public key that a badge is bound to: its coordinates, 32 bytes each, base64url.
type BoundKey struct{ X, Y string }

// StatusList is a verified status list. Times are seconds since 1970-01-01 UTC.
type StatusList struct {
	URI       string
	IssuedAt  int64
	ExpiresAt int64
	// TTLSeconds is zero if the list does not say after how many seconds to download it again.
	TTLSeconds int64
	Statuses   []byte
	// Change is the last change that it contains; nil if the list does not say.
	Change *int64
}

// StatusDelta is what has changed after Since and up to Change. Times are seconds since 1970-01-01 UTC.
type StatusDelta struct {
	// URI is the address of the application's lists without the last slash and the number.
	URI           string
	IssuedAt      int64
	Since, Change int64
	Entries       []StatusEntry
}

// StatusEntry is the present status of a badge.
type StatusEntry struct{ List, Index, Status int64 }

// VerifyBadgeSignature verifies the `signature` of POST /v1/badge/sign. The error is a Refused, or another one if a number
// of seconds is not finite and at least 0.
func VerifyBadgeSignature(jwt string, expected Expectations) (*BadgeSignature, error) {
	maxAge := 0.0
	if expected.MaxAgeSeconds != nil {
		maxAge = *expected.MaxAgeSeconds
	}
	for _, seconds := range []float64{expected.NowSeconds, expected.ClockToleranceSeconds, maxAge} {
		// Every comparison with NaN is false: the time checks would refuse nothing.
		if math.IsNaN(seconds) || math.IsInf(seconds, 0) || seconds < 0 {
			return nil, errors.New("a number of seconds is not a finite number of at least 0")
		}
	}
	now, tolerance := math.Floor(expected.NowSeconds), expected.ClockToleranceSeconds

	payload, keyID, err := verifySignedJWT(jwt, "badge-signature+jwt", maxBadgeSignatureCharacters, expected.Keys)
	if err != nil {
		return nil, err
	}
	// Only now is the payload known to come from the service.
	claims, err := parseBadgeClaims(payload)
	if err != nil {
		return nil, err
	}
	if claims.audience != expected.ApplicationID {
		return nil, Refused("wrong-audience")
	}
	if math.Max(float64(claims.IssuedAt), float64(claims.notBefore)) > now+tolerance {
		return nil, Refused("not-yet-valid")
	}
	if claims.ExpiresAt != nil && now >= float64(*claims.ExpiresAt)+tolerance {
		return nil, Refused("expired")
	}
	if expected.MaxAgeSeconds != nil && now-float64(claims.IssuedAt) > maxAge+tolerance {
		return nil, Refused("too-old")
	}
	if expected.BadgeNumber != nil && claims.BadgeNumber != *expected.BadgeNumber {
		return nil, Refused("wrong-badge-number")
	}
	if expected.ClientSignature != nil && claims.ClientSignature != *expected.ClientSignature {
		return nil, Refused("wrong-client-signature")
	}
	result := claims.BadgeSignature
	result.KeyID = keyID
	if claims.status != nil {
		if result.AcceptedDespite, err = checkStatus(*claims.status, expected, now); err != nil {
			return nil, err
		}
	}
	return &result, nil
}

var doorIDPattern = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

var challengePattern = regexp.MustCompile(
	`\Abadge-possession-v1\.([A-Za-z0-9_-]{1,64})\.[A-Za-z0-9_-]{43}\.([1-9][0-9]{0,11})\z`)

// CreateChallenge creates a challenge for one phone, which the door sends and keeps until the response has come.
//
// doorID is 1 to 64 characters out of A-Z a-z 0-9 _ -, nowSeconds the time since 1970-01-01 UTC by the door's clock, and
// lifetimeSeconds from 1 to 60: DefaultChallengeLifetimeSeconds is a good value. Anything else is an error.
func CreateChallenge(doorID string, nowSeconds float64, lifetimeSeconds int) (string, error) {
	if !doorIDPattern.MatchString(doorID) {
		return "", errors.New("doorID has another form")
	}
	// The upper limit keeps the expiry within the twelve digits of the form. NaN fails both comparisons.
	if !(nowSeconds >= 1 && nowSeconds < 1e11) {
		return "", errors.New("nowSeconds is not a time in seconds")
	}
	if lifetimeSeconds < 1 || lifetimeSeconds > maxChallengeLifetimeSeconds {
		return "", errors.New("lifetimeSeconds is not a number from 1 to 60")
	}
	random := make([]byte, challengeRandomBytes)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(random)
	return fmt.Sprintf("badge-possession-v1.%s.%s.%d", doorID, text, int64(nowSeconds)+int64(lifetimeSeconds)), nil
}

// PossessionExpectations are what a badge signature and the phone's response must match.
type PossessionExpectations struct {
	Expectations
	// DoorID is the door's own ID, as in CreateChallenge.
	DoorID string
	// Challenge is what this door has just sent to this phone.
	Challenge string
}

// VerifyPossession verifies a badge signature, and that the phone that presents it holds the key that the badge is bound to: the
// phone has signed this door's challenge together with this badge signature. The result always has a BoundKey.
//
// Discard the challenge after one verification, whatever its result. The error is as that of VerifyBadgeSignature.
func VerifyPossession(badgeSignature, response string, expected PossessionExpectations) (*BadgeSignature, error) {
	badge, err := VerifyBadgeSignature(badgeSignature, expected.Expectations)
	if err != nil {
		return nil, err
	}
	if badge.BoundKey == nil {
		return nil, Refused("not-bound")
	}
	key := p256Key(badge.BoundKey.X, badge.BoundKey.Y)
	if key == nil {
		return nil, Refused("malformed")
	}
	jws, err := splitJWS(response, maxResponseCharacters)
	if err != nil {
		return nil, Refused("malformed-response")
	}
	if _, isPresent := jws.header["crit"]; isPresent {
		return nil, Refused("malformed-response")
	}
	if jws.header["alg"] != "ES256" {
		return nil, Refused("wrong-response-algorithm")
	}
	if jws.header["typ"] != "door-response+jwt" {
		return nil, Refused("wrong-response-type")
	}
	if !jws.isSignedBy(key) {
		return nil, Refused("bad-response-signature")
	}
	claims, err := parseObject(jws.payload)
	if err != nil {
		return nil, Refused("malformed-response")
	}
	if err := checkResponse(claims, badgeSignature, expected); err != nil {
		return nil, err
	}
	return badge, nil
}

func checkResponse(claims map[string]any, badgeSignature string, expected PossessionExpectations) error {
	// A door signs nothing in this protocol; should it ever, its messages have another role.
	if claims["role"] != "phone" {
		return Refused("wrong-role")
	}
	own := challengePattern.FindStringSubmatch(expected.Challenge)
	if own == nil || own[1] != expected.DoorID || claims["challenge"] != expected.Challenge {
		return Refused("wrong-challenge")
	}
	expiry, err := strconv.ParseFloat(own[2], 64)
	left := expiry - math.Floor(expected.NowSeconds)
	// Too much time is left when the door's clock was set back.
	if err != nil || left <= 0 || left > maxChallengeLifetimeSeconds {
		return Refused("expired-challenge")
	}
	if claims["application_id"] != expected.ApplicationID {
		return Refused("wrong-application")
	}
	hash := sha256.Sum256([]byte(badgeSignature))
	if claims["badge_signature_hash"] != base64.RawURLEncoding.EncodeToString(hash[:]) {
		return Refused("wrong-badge-signature")
	}
	return nil
}

// ReadStatusList verifies a status list. Its times are checked when it is used, so it can be kept. The error is a Refused.
func ReadStatusList(jwt string, keys Keys, uri string) (*StatusList, error) {
	payload, _, err := verifySignedJWT(jwt, "statuslist+jwt", maxStatusListCharacters, keys)
	if err != nil {
		return nil, err
	}
	claims, err := parseObject(payload)
	if err != nil {
		return nil, err
	}
	subject, isText := claims["sub"].(string)
	statusList, isObject := claims["status_list"].(map[string]any)
	issuedAt, isTime := wholeNumber(claims["iat"])
	expiresAt, isExpiry := wholeNumber(claims["exp"])
	bits, isNumber := wholeNumber(statusList["bits"])
	if !isText || !isObject || !isTime || !isExpiry || !isNumber || bits != statusBits {
		return nil, Refused("malformed")
	}
	ttlSeconds, isTTL := wholeNumber(claims["ttl"])
	if _, isPresent := claims["ttl"]; isPresent && (!isTTL || ttlSeconds == 0) {
		return nil, Refused("malformed")
	}
	var change *int64
	if value, isPresent := claims["change"]; isPresent {
		number, isNumber := wholeNumber(value)
		if !isNumber {
			return nil, Refused("malformed")
		}
		change = &number
	}
	lst, isText := statusList["lst"].(string)
	if !isText {
		return nil, Refused("malformed")
	}
	statuses, err := unpackStatuses(lst)
	if err != nil {
		return nil, err
	}
	if subject != uri {
		return nil, Refused("wrong-uri")
	}
	return &StatusList{subject, issuedAt, expiresAt, ttlSeconds, statuses, change}, nil
}

// ReadStatusDelta verifies a response of GET /v1/live. The URI is that of the application's lists, without the last slash and the
// number. The error is a Refused.
func ReadStatusDelta(jwt string, keys Keys, uri string) (*StatusDelta, error) {
	payload, _, err := verifySignedJWT(jwt, "statusdelta+jwt", maxStatusListCharacters, keys)
	if err != nil {
		return nil, err
	}
	claims, err := parseObject(payload)
	if err != nil {
		return nil, err
	}
	subject, isText := claims["sub"].(string)
	entries, isList := claims["entries"].([]any)
	issuedAt, isTime := wholeNumber(claims["iat"])
	since, isSince := wholeNumber(claims["since"])
	change, isChange := wholeNumber(claims["change"])
	if !isText || !isList || !isTime || !isSince || !isChange || since > change {
		return nil, Refused("malformed")
	}
	delta := &StatusDelta{subject, issuedAt, since, change, nil}
	for _, each := range entries {
		numbers, isList := each.([]any)
		if !isList || len(numbers) != 3 {
			return nil, Refused("malformed")
		}
		list, isList := wholeNumber(numbers[0])
		index, isIndex := wholeNumber(numbers[1])
		status, isStatus := wholeNumber(numbers[2])
		if !isList || !isIndex || !isStatus || status >= 1<<statusBits {
			return nil, Refused("malformed")
		}
		delta.Entries = append(delta.Entries, StatusEntry{list, index, status})
	}
	if subject != uri {
		return nil, Refused("wrong-uri")
	}
	return delta, nil
}

var listNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,10})$`)

// ApplyStatusDelta returns the list with the delta's changes, or the list itself if it contains them already. It returns false if
// the delta does not fit: it is for another application, the list lacks earlier changes, or the list has no such entry. Then
// download the list again.
func ApplyStatusDelta(list *StatusList, delta *StatusDelta) (*StatusList, bool) {
	number := strings.TrimPrefix(list.URI, delta.URI+"/")
	if number == list.URI || !listNumber.MatchString(number) || list.Change == nil || *list.Change < delta.Since {
		return nil, false
	}
	if *list.Change >= delta.Change {
		return list, true
	}
	applied := *list
	applied.Change = &delta.Change
	applied.Statuses = append([]byte(nil), list.Statuses...)
	for _, entry := range delta.Entries {
		if strconv.FormatInt(entry.List, 10) != number {
			continue
		}
		place, shift := entry.Index/(8/statusBits), entry.Index%(8/statusBits)*statusBits
		if place >= int64(len(applied.Statuses)) {
			return nil, false
		}
		cleared := int64(applied.Statuses[place]) &^ ((1<<statusBits - 1) << shift)
		applied.Statuses[place] = byte(cleared | entry.Status<<shift)
	}
	return &applied, true
}

// unpackStatuses returns the bytes of `lst`: base64url of exactly one zlib stream, of at most 262,144 bytes.
func unpackStatuses(lst string) ([]byte, error) {
	compressed, err := decodeBase64URL(lst)
	if err != nil {
		return nil, err
	}
	// A bytes.Reader is read byte by byte, so that bytes after the stream remain unread.
	input := bytes.NewReader(compressed)
	stream, err := zlib.NewReader(input)
	if err != nil {
		return nil, Refused("malformed")
	}
	// The limit keeps a small list from filling the memory.
	statuses, err := io.ReadAll(io.LimitReader(stream, maxStatusListBytes+1))
	if err != nil || len(statuses) > maxStatusListBytes || input.Len() > 0 {
		return nil, Refused("malformed")
	}
	return statuses, nil
}

// statusAt returns the entry at an index, from the least significant bit of each byte; false beyond the end.
func statusAt(statuses []byte, index, bits int64) (byte, bool) {
	entriesPerByte := 8 / bits
	if index/entriesPerByte >= int64(len(statuses)) {
		return 0, false
	}
	shift := index % entriesPerByte * bits
	return byte(int(statuses[index/entriesPerByte]) >> shift & (1<<bits - 1)), true
}

type statusReference struct {
	uri   string
	index int64
}

// checkStatus returns what is accepted despite a doubt, or an empty text.
func checkStatus(status statusReference, expected Expectations, now float64) (string, error) {
	list, isPresent := expected.StatusLists[status.uri]
	if !isPresent {
		return byPolicy("status-unknown", expected.MissingStatusList)
	}
	if list == nil || list.URI != status.uri || float64(list.IssuedAt) > now+expected.ClockToleranceSeconds {
		return "", Refused("status-unknown")
	}
	// A stale list still counts. 3 is not used.
	value, isInList := statusAt(list.Statuses, status.index, statusBits)
	switch {
	case isInList && value == 1:
		return "", Refused("revoked")
	case isInList && value == 2:
		return "", Refused("suspended")
	case !isInList || value != 0:
		return "", Refused("status-unknown")
	}
	if now >= float64(list.ExpiresAt)+expected.ClockToleranceSeconds {
		return byPolicy("status-stale", expected.StaleStatusList)
	}
	return "", nil
}

func byPolicy(doubt string, policy Policy) (string, error) {
	if policy == Accept {
		return doubt, nil
	}
	return "", Refused(doubt)
}

type badgeClaims struct {
	BadgeSignature
	audience  string
	notBefore int64
	status    *statusReference
}

var badgeNumberPattern = regexp.MustCompile(`\A[1-9][0-9]{0,15}\z`)

func isBadgeNumber(text string) bool {
	number, err := strconv.ParseInt(text, 10, 64)
	return badgeNumberPattern.MatchString(text) && err == nil && number <= maxInteger
}

func parseBadgeClaims(payload []byte) (*badgeClaims, error) {
	members, err := parseObject(payload)
	if err != nil {
		return nil, err
	}
	number, isText := members["sub"].(string)
	audience, isAudience := members["aud"].(string)
	signature, isSignature := members["client_signature"].(string)
	issuedAt, isTime := wholeNumber(members["iat"])
	if !isText || !isAudience || !isSignature || !isTime || !isBadgeNumber(number) {
		return nil, Refused("malformed")
	}
	claims := badgeClaims{audience: audience}
	claims.BadgeNumber, claims.IssuedAt, claims.ClientSignature = number, issuedAt, signature
	if value, isPresent := members["nbf"]; isPresent {
		if claims.notBefore, isTime = wholeNumber(value); !isTime {
			return nil, Refused("malformed")
		}
	}
	if value, isPresent := members["exp"]; isPresent {
		expiresAt, isTime := wholeNumber(value)
		if !isTime {
			return nil, Refused("malformed")
		}
		claims.ExpiresAt = &expiresAt
	}
	if value, isPresent := members["status"]; isPresent {
		status, _ := value.(map[string]any)
		reference, _ := status["status_list"].(map[string]any)
		uri, isURI := reference["uri"].(string)
		index, isIndex := wholeNumber(reference["idx"])
		if !isURI || !isIndex {
			return nil, Refused("malformed")
		}
		claims.status = &statusReference{uri, index}
	}
	if value, isPresent := members["cnf"]; isPresent {
		if claims.BoundKey = parseConfirmation(value); claims.BoundKey == nil {
			// A confirmation that is not understood must not make a bound badge look unbound.
			return nil, Refused("malformed")
		}
	}
	return &claims, nil
}

// parseConfirmation reads `cnf`; nil if it has no P-256 key.
func parseConfirmation(value any) *BoundKey {
	confirmation, _ := value.(map[string]any)
	jwk, _ := confirmation["jwk"].(map[string]any)
	x, isX := jwk["x"].(string)
	y, isY := jwk["y"].(string)
	if jwk["kty"] != "EC" || jwk["crv"] != "P-256" || !isX || !isY || !isCoordinate(x) || !isCoordinate(y) {
		return nil
	}
	return &BoundKey{x, y}
}

func isCoordinate(text string) bool {
	value, err := decodeBase64URL(text)
	return err == nil && len(value) == 32
}

// compactJWS is not yet verified. The payload is not parsed until it is.
type compactJWS struct {
	header             map[string]any
	payload, signature []byte
	signingInput       string
}

func splitJWS(text string, maxCharacters int) (*compactJWS, error) {
	parts := strings.Split(text, ".")
	if len(text) > maxCharacters || len(parts) != 3 {
		return nil, Refused("malformed")
	}
	var decoded [3][]byte
	for index, part := range parts {
		value, err := decodeBase64URL(part)
		if err != nil {
			return nil, err
		}
		decoded[index] = value
	}
	header, err := parseObject(decoded[0])
	if err != nil {
		return nil, err
	}
	return &compactJWS{header, decoded[1], decoded[2], text[:strings.LastIndexByte(text, '.')]}, nil
}

func (jws *compactJWS) isSignedBy(key *ecdsa.PublicKey) bool {
	if len(jws.signature) != 64 {
		return false
	}
	hash := sha256.Sum256([]byte(jws.signingInput))
	r, s := new(big.Int).SetBytes(jws.signature[:32]), new(big.Int).SetBytes(jws.signature[32:])
	return ecdsa.Verify(key, hash[:], r, s)
}

// verifySignedJWT returns the payload, not parsed, and the key's ID.
func verifySignedJWT(jwt, kind string, maxCharacters int, keys Keys) ([]byte, string, error) {
	jws, err := splitJWS(jwt, maxCharacters)
	if err != nil {
		return nil, "", err
	}
	if _, isPresent := jws.header["crit"]; isPresent {
		return nil, "", Refused("malformed")
	}
	// Decided before a key is chosen, so that a JWT cannot choose how it is verified.
	if jws.header["alg"] != "ES256" {
		return nil, "", Refused("wrong-algorithm")
	}
	if jws.header["typ"] != kind {
		return nil, "", Refused("wrong-type")
	}
	keyID, isText := jws.header["kid"].(string)
	if !isText {
		return nil, "", Refused("malformed")
	}
	key := trustedKey(keys, keyID)
	if key == nil {
		return nil, "", Refused("unknown-key")
	}
	if !jws.isSignedBy(key) {
		return nil, "", Refused("bad-signature")
	}
	return jws.payload, keyID, nil
}

// trustedKey chooses the key that verifies a JWT; nil if there is none. A single key is used whatever kid says.
func trustedKey(keys Keys, keyID string) *ecdsa.PublicKey {
	if keys.PublicKey != "" {
		der, err := base64.StdEncoding.Strict().DecodeString(keys.PublicKey)
		if err != nil || strings.ContainsAny(keys.PublicKey, "\r\n") {
			return nil
		}
		parsed, err := x509.ParsePKIXPublicKey(der)
		key, isECDSA := parsed.(*ecdsa.PublicKey)
		if err != nil || !isECDSA || key.Curve != elliptic.P256() {
			return nil
		}
		return key
	}
	for _, candidate := range keys.Set {
		jwk, isObject := candidate.(map[string]any)
		if !isObject || jwk["kid"] != keyID || jwk["kty"] != "EC" || jwk["crv"] != "P-256" || !mayVerify(jwk) {
			continue
		}
		x, isX := jwk["x"].(string)
		y, isY := jwk["y"].(string)
		if isX && isY {
			return p256Key(x, y)
		}
	}
	return nil
}

// mayVerify is whether a JWK's intended use, where it is stated, allows verifying ES256.
func mayVerify(jwk map[string]any) bool {
	for member, wanted := range map[string]string{"use": "sig", "alg": "ES256"} {
		if value, isPresent := jwk[member]; isPresent && value != wanted {
			return false
		}
	}
	value, isPresent := jwk["key_ops"]
	operations, _ := value.([]any)
	for _, operation := range operations {
		if operation == "verify" {
			return true
		}
	}
	return !isPresent
}

func p256Key(x, y string) *ecdsa.PublicKey {
	xBytes, xErr := decodeBase64URL(x)
	yBytes, yErr := decodeBase64URL(y)
	if xErr != nil || yErr != nil || len(xBytes) != 32 || len(yBytes) != 32 {
		return nil
	}
	key := &ecdsa.PublicKey{
		Curve: elliptic.P256(),
		X:     new(big.Int).SetBytes(xBytes),
		Y:     new(big.Int).SetBytes(yBytes),
	}
	if !key.Curve.IsOnCurve(key.X, key.Y) {
		return nil
	}
	return key
}

// decodeBase64URL reads base64url without padding, white space or stray bits in the last character.
func decodeBase64URL(text string) ([]byte, error) {
	value, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// Go's decoder skips line feeds and carriage returns.
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return nil, Refused("malformed")
	}
	return value, nil
}

// parseObject reads a JSON object in UTF-8 and nothing after it. A map, because Go fills structs in any letter case.
func parseObject(data []byte) (map[string]any, error) {
	// Go's decoder replaces invalid UTF-8.
	if !utf8.Valid(data) {
		return nil, Refused("malformed")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, Refused("malformed")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, Refused("malformed")
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil, Refused("malformed")
	}
	return object, nil
}

// wholeNumber reads a parsed number from 0 to 2^53 - 1, as a double like JavaScript.
func wholeNumber(value any) (int64, bool) {
	number, isNumber := value.(json.Number)
	if !isNumber {
		return 0, false
	}
	double, err := number.Float64()
	if err != nil || double < 0 || double > maxInteger || double != math.Floor(double) {
		return 0, false
	}
	return int64(double), true
}

// Card formats. Bits are counted from 1; a later parity bit may cover an earlier one.

type cardLayout struct {
	bits int
	// siteCode is zero if the format has none.
	siteCode   bitRange
	cardNumber bitRange
	parity     []parityBit
}

type bitRange struct{ first, last int }

func (field bitRange) width() int {
	if field.first == 0 {
		return 0
	}
	return field.last - field.first + 1
}

type parityBit struct {
	bit    int
	odd    bool
	covers []int
}

func span(first, last int) []int {
	var bits []int
	for bit := first; bit <= last; bit++ {
		bits = append(bits, bit)
	}
	return bits
}

func twoOfThree(first, last int) []int {
	var bits []int
	for bit := first; bit <= last; bit++ {
		if (bit-first)%3 != 2 {
			bits = append(bits, bit)
		}
	}
	return bits
}

var h1030xParity = []parityBit{{1, false, span(2, 19)}, {37, true, span(19, 36)}}

var cardLayouts = map[string]cardLayout{
	"h10301": {26, bitRange{2, 9}, bitRange{10, 25}, []parityBit{{1, false, span(2, 13)}, {26, true, span(14, 25)}}},
	"h10302": {37, bitRange{}, bitRange{2, 36}, h1030xParity},
	"h10304": {37, bitRange{2, 17}, bitRange{18, 36}, h1030xParity},
	"corporate1000": {35, bitRange{3, 14}, bitRange{15, 34}, []parityBit{
		{2, false, twoOfThree(3, 34)}, {35, true, twoOfThree(2, 33)}, {1, true, span(2, 35)},
	}},
	"corporate1000_48": {48, bitRange{3, 24}, bitRange{25, 47}, []parityBit{
		{2, false, twoOfThree(4, 47)}, {48, true, twoOfThree(3, 46)}, {1, true, span(2, 48)},
	}},
}

// Card is what a reader sent. SiteCode is nil in a format that has none.
type Card struct {
	BadgeNumber string
	SiteCode    *int64
	CardNumber  int64
}

// EncodeCard returns the bits of a badge number's card, as text of 0 and 1; false if the number does not fit the format.
func EncodeCard(format, badgeNumber string) (string, bool) {
	layout, isFormat := cardLayouts[format]
	if !isFormat || !isBadgeNumber(badgeNumber) {
		return "", false
	}
	number, err := strconv.ParseInt(badgeNumber, 10, 64)
	siteCode, cardNumber := number>>layout.cardNumber.width(), number&(1<<layout.cardNumber.width()-1)
	if err != nil || siteCode >= 1<<layout.siteCode.width() || cardNumber == 0 {
		return "", false
	}
	frame := bytes.Repeat([]byte("0"), layout.bits)
	writeField(frame, layout.siteCode, siteCode)
	writeField(frame, layout.cardNumber, cardNumber)
	for _, parity := range layout.parity {
		frame[parity.bit-1] = parityOf(frame, parity)
	}
	return string(frame), true
}

// DecodeCard reads the bits of a card. The error is a Refused: wrong-length, wrong-parity or unused-number.
func DecodeCard(format, bits string) (*Card, error) {
	layout, isFormat := cardLayouts[format]
	if !isFormat {
		return nil, fmt.Errorf("%q is not a card format", format)
	}
	if len(bits) != layout.bits || strings.Trim(bits, "01") != "" {
		return nil, Refused("wrong-length")
	}
	frame := []byte(bits)
	for _, parity := range layout.parity {
		if frame[parity.bit-1] != parityOf(frame, parity) {
			return nil, Refused("wrong-parity")
		}
	}
	card := Card{CardNumber: readField(frame, layout.cardNumber)}
	if card.CardNumber == 0 {
		return nil, Refused("unused-number")
	}
	number := card.CardNumber
	if layout.siteCode.width() > 0 {
		siteCode := readField(frame, layout.siteCode)
		card.SiteCode = &siteCode
		number += siteCode << layout.cardNumber.width()
	}
	card.BadgeNumber = strconv.FormatInt(number, 10)
	return &card, nil
}

// CardHex returns the bits as one number in hexadecimal.
func CardHex(bits string) string {
	number, _ := strconv.ParseUint(bits, 2, 64)
	return fmt.Sprintf("%0*X", (len(bits)+3)/4, number)
}

func writeField(frame []byte, field bitRange, value int64) {
	for bit := field.last; field.width() > 0 && bit >= field.first; bit-- {
		frame[bit-1] = byte('0' + value&1)
		value >>= 1
	}
}

func readField(frame []byte, field bitRange) int64 {
	value, _ := strconv.ParseInt(string(frame[field.first-1:field.last]), 2, 64)
	return value
}

func parityOf(frame []byte, parity parityBit) byte {
	ones := 0
	if parity.odd {
		ones = 1
	}
	for _, bit := range parity.covers {
		ones += int(frame[bit-1] - '0')
	}
	return byte('0' + ones%2)
}
