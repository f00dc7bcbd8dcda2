package badgeverify

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// vectors is vectors.json in the folder above, or in the one that VECTORS names.
type vectors struct {
	Cases               []testCase
	StatusListEncodings []struct {
		Name     string
		Bits     int64
		Lst      string
		Entries  int64
		Statuses map[string]byte
	}
	StatusDeltas []struct {
		Name, Expected, JWT, URI, List, ListURI string
		PublicKeys                              struct{ Keys []any }
		Change                                  int64
		Statuses                                map[string]byte
	}
	Cards []struct {
		Format, BadgeNumber, Bits, Hex string
		SiteCode                       *int64
		CardNumber                     int64
	}
	RefusedCards []struct{ Format, Name, Bits, Expected string }
	UnfitNumbers []struct{ Format, BadgeNumber string }
}

type testCase struct {
	Name, Expected, JWT, ApplicationID, PublicKey string
	PublicKeys                                    struct{ Keys []any }
	NowSeconds, ClockToleranceSeconds             float64
	MaxAgeSeconds                                 *float64
	BadgeNumber, ClientSignature                  *string
	StatusLists                                   map[string]string
	MissingStatusList, StaleStatusList            string
	StatusListFailure, AcceptedDespite, KeyID     string
	Claims                                        struct {
		Sub             string
		Iat             int64
		Exp             *int64
		ClientSignature string `json:"client_signature"`
	}
}

func (each testCase) keys() Keys {
	return Keys{Set: each.PublicKeys.Keys, PublicKey: each.PublicKey}
}

func policy(text string) Policy {
	if text == "accept" {
		return Accept
	}
	return Refuse
}

func (each testCase) run() (*BadgeSignature, error) {
	lists := map[string]*StatusList{}
	for uri, jwt := range each.StatusLists {
		lists[uri], _ = ReadStatusList(jwt, each.keys(), uri)
	}
	return VerifyBadgeSignature(each.JWT, Expectations{
		Keys:                  each.keys(),
		ApplicationID:         each.ApplicationID,
		NowSeconds:            each.NowSeconds,
		BadgeNumber:           each.BadgeNumber,
		ClientSignature:       each.ClientSignature,
		MaxAgeSeconds:         each.MaxAgeSeconds,
		ClockToleranceSeconds: each.ClockToleranceSeconds,
		StatusLists:           lists,
		MissingStatusList:     policy(each.MissingStatusList),
		StaleStatusList:       policy(each.StaleStatusList),
	})
}

func (each testCase) want() *BadgeSignature {
	return &BadgeSignature{
		BadgeNumber:     each.Claims.Sub,
		IssuedAt:        each.Claims.Iat,
		ExpiresAt:       each.Claims.Exp,
		ClientSignature: each.Claims.ClientSignature,
		KeyID:           each.KeyID,
		AcceptedDespite: each.AcceptedDespite,
	}
}

// possessionVectors is vectors-possession.json beside it.
type possessionVectors struct {
	TestKeys struct{ Phone struct{ PublicJwk BoundKey } }
	Cases    []struct {
		Name, Expected, BadgeSignature, Response, Challenge, DoorID string
		PublicKey, ApplicationID                                    string
		NowSeconds, ClockToleranceSeconds                           float64
	}
}

func readVectors(t *testing.T) vectors {
	var read vectors
	readFile(t, "vectors.json", &read)
	if len(read.Cases) == 0 || len(read.StatusListEncodings) == 0 || len(read.Cards) == 0 {
		t.Fatal("no vectors")
	}
	return read
}

func readFile(t *testing.T, name string, into any) {
	folder := os.Getenv("VECTORS")
	if folder == "" {
		folder = ".."
	}
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func reasonOf(err error) string {
	var refused Refused
	if errors.As(err, &refused) {
		return string(refused)
	}
	return "ok"
}

func TestCases(t *testing.T) {
	read := readVectors(t)
	for _, each := range read.Cases {
		result, err := each.run()
		switch {
		case each.Expected != "ok":
			if reasonOf(err) != each.Expected {
				t.Errorf("%s: %s: %v", each.Expected, each.Name, reasonOf(err))
			}
		case !reflect.DeepEqual(result, each.want()):
			t.Errorf("ok: %s: %+v, %v", each.Name, result, err)
		}
		if each.StatusListFailure == "" {
			continue
		}
		for uri, jwt := range each.StatusLists {
			if _, err := ReadStatusList(jwt, each.keys(), uri); reasonOf(err) != each.StatusListFailure {
				t.Errorf("%s by itself: %s instead of %s", each.Name, reasonOf(err), each.StatusListFailure)
			}
		}
	}
	t.Logf("%d cases", len(read.Cases))
}

func TestStatusDeltas(t *testing.T) {
	read := readVectors(t)
	for _, each := range read.StatusDeltas {
		keys := Keys{Set: each.PublicKeys.Keys}
		delta, err := ReadStatusDelta(each.JWT, keys, each.URI)
		if err != nil {
			if reasonOf(err) != each.Expected {
				t.Errorf("%s: %s: %v", each.Expected, each.Name, reasonOf(err))
			}
			continue
		}
		list, err := ReadStatusList(each.List, keys, each.ListURI)
		if err != nil {
			t.Fatal(err)
		}
		applied, fits := ApplyStatusDelta(list, delta)
		if !fits {
			if each.Expected != "does-not-fit" {
				t.Errorf("%s: %s: does not fit", each.Expected, each.Name)
			}
			continue
		}
		found := map[string]byte{}
		for index := int64(0); index < int64(len(applied.Statuses))*4; index++ {
			if status, _ := statusAt(applied.Statuses, index, 2); status != 0 {
				found[strconv.FormatInt(index, 10)] = status
			}
		}
		if each.Expected != "ok" || *applied.Change != each.Change || !reflect.DeepEqual(found, each.Statuses) {
			t.Errorf("%s: %s: %d %v", each.Expected, each.Name, *applied.Change, found)
		}
	}
	t.Logf("%d deltas", len(read.StatusDeltas))
}

func TestPossession(t *testing.T) {
	var read possessionVectors
	readFile(t, "vectors-possession.json", &read)
	if len(read.Cases) == 0 {
		t.Fatal("no vectors")
	}
	for _, each := range read.Cases {
		badge, err := VerifyPossession(each.BadgeSignature, each.Response, PossessionExpectations{
			Expectations: Expectations{
				Keys:                  Keys{PublicKey: each.PublicKey},
				ApplicationID:         each.ApplicationID,
				NowSeconds:            each.NowSeconds,
				ClockToleranceSeconds: each.ClockToleranceSeconds,
			},
			DoorID:    each.DoorID,
			Challenge: each.Challenge,
		})
		switch {
		case each.Expected != "ok":
			if reasonOf(err) != each.Expected {
				t.Errorf("%s: %s: %v", each.Expected, each.Name, reasonOf(err))
			}
		case badge == nil || !reflect.DeepEqual(badge.BoundKey, &read.TestKeys.Phone.PublicJwk):
			t.Errorf("ok: %s: %+v, %v", each.Name, badge, err)
		}
	}
	t.Logf("%d cases", len(read.Cases))
}

func TestChallenges(t *testing.T) {
	form := regexp.MustCompile(`\Abadge-possession-v1\.gate_2-B\.[A-Za-z0-9_-]{43}\.1800000010\z`)
	made := map[string]bool{}
	for len(made) < 100 {
		challenge, err := CreateChallenge("gate_2-B", 1_800_000_000.5, DefaultChallengeLifetimeSeconds)
		if err != nil || !form.MatchString(challenge) || made[challenge] {
			t.Fatalf("%q, %v", challenge, err)
		}
		made[challenge] = true
	}
	if longest, err := CreateChallenge("a", 1_800_000_000, 60); err != nil || !strings.HasSuffix(longest, ".1800000060") {
		t.Errorf("%q, %v", longest, err)
	}
	for _, doorID := range []string{"", "a.b", "a b", "\u00e4", "a\n", strings.Repeat("a", 65)} {
		if challenge, err := CreateChallenge(doorID, 1_800_000_000, 10); err == nil {
			t.Errorf("%q for the door %q", challenge, doorID)
		}
	}
	for _, now := range []float64{math.NaN(), math.Inf(1), -1, 0, 1_800_000_000_000} {
		if challenge, err := CreateChallenge("a", now, 10); err == nil {
			t.Errorf("%q at %v", challenge, now)
		}
	}
	for _, lifetime := range []int{-1, 0, 61} {
		if challenge, err := CreateChallenge("a", 1_800_000_000, lifetime); err == nil {
			t.Errorf("%q for %d s", challenge, lifetime)
		}
	}
}

func TestStatusListEncodings(t *testing.T) {
	for _, each := range readVectors(t).StatusListEncodings {
		statuses, err := unpackStatuses(each.Lst)
		if err != nil {
			t.Errorf("%s: %v", each.Name, err)
		}
		for index := int64(0); index < each.Entries; index++ {
			want := each.Statuses[strconv.FormatInt(index, 10)]
			if status, isInList := statusAt(statuses, index, each.Bits); !isInList || status != want {
				t.Errorf("%s: %d at %d instead of %d", each.Name, status, index, want)
			}
		}
		if _, isInList := statusAt(statuses, each.Entries, each.Bits); isInList {
			t.Errorf("%s: an entry after the last", each.Name)
		}
	}
}

func TestCards(t *testing.T) {
	read := readVectors(t)
	for _, each := range read.Cards {
		if bits, _ := EncodeCard(each.Format, each.BadgeNumber); bits != each.Bits {
			t.Errorf("%s %s: encoded as %s", each.Format, each.BadgeNumber, bits)
		}
		if hex := CardHex(each.Bits); hex != each.Hex {
			t.Errorf("%s %s: %s", each.Format, each.BadgeNumber, hex)
		}
		want := &Card{each.BadgeNumber, each.SiteCode, each.CardNumber}
		if card, err := DecodeCard(each.Format, each.Bits); !reflect.DeepEqual(card, want) {
			t.Errorf("%s %s: decoded as %+v, %v", each.Format, each.BadgeNumber, card, err)
		}
	}
	for _, each := range read.RefusedCards {
		if _, err := DecodeCard(each.Format, each.Bits); reasonOf(err) != each.Expected {
			t.Errorf("%s, %s: %s instead of %s", each.Format, each.Name, reasonOf(err), each.Expected)
		}
	}
	for _, each := range read.UnfitNumbers {
		if bits, fits := EncodeCard(each.Format, each.BadgeNumber); fits {
			t.Errorf("%s for %q: %s", each.Format, each.BadgeNumber, bits)
		}
	}
}

func TestSecondsThatTurnAComparisonOff(t *testing.T) {
	nan := 0.0
	nan /= nan
	for _, expected := range []Expectations{
		{NowSeconds: nan},
		{NowSeconds: -1},
		{ClockToleranceSeconds: nan},
		{MaxAgeSeconds: &nan},
	} {
		if _, err := VerifyBadgeSignature("", expected); err == nil || reasonOf(err) != "ok" {
			t.Errorf("%+v: %v", expected, err)
		}
	}
}
