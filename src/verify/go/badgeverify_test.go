package badgeverify

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strconv"
	"testing"
)

// vectors is ../vectors.json, or the file that VECTORS names.
type vectors struct {
	Cases               []testCase
	StatusListEncodings []struct {
		Name     string
		Bits     int64
		Lst      string
		Entries  int64
		Statuses map[string]byte
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

func readVectors(t *testing.T) vectors {
	path := os.Getenv("VECTORS")
	if path == "" {
		path = "../vectors.json"
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var read vectors
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Cases) == 0 || len(read.StatusListEncodings) == 0 || len(read.Cards) == 0 {
		t.Fatal("no vectors")
	}
	return read
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
