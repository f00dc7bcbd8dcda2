// A webhook receiver to start from, with Go's standard library alone (1.19 or later). It verifies each webhook, responds at once,
// skips events that it has had already, and prints each event on one line:
//
//	APPLICATION_SECRET=bdss_… PORT=4000 go run src/examples/receiver.go
//
// While you change from one application secret to the next, give both, separated by a comma.
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// An older webhook is refused, because it may be a replay.
	tolerance           = 5 * time.Minute
	maxBodyBytes        = 64 * 1024
	maxRememberedEvents = 10_000
)

type receiver struct {
	secrets [][]byte
	mutex   sync.Mutex
	// Events come at least once, so sometimes twice. In your server this is a unique column in the table that an event changes. They
	// also come in any order: of an event about a badge's state, ignore a data.change that is lower than the one you have stored.
	handled map[string]bool
	oldest  []string
}

type event struct {
	ID    string          `json:"id"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

func (r *receiver) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	// The bytes as they arrived, since those were signed: parsed and serialized again, they would not match.
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxBodyBytes))
	if err != nil {
		// More than any webhook has: the connection ends without a response.
		panic(http.ErrAbortHandler)
	}
	if !r.isGenuine(request.Header, body) {
		fmt.Fprintln(os.Stderr, "refused: not signed with this secret, or too old")
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	var received event
	if err := json.Unmarshal(body, &received); err != nil {
		panic(http.ErrAbortHandler)
	}
	// 2xx means that the event is stored; after anything else it is sent again.
	r.handle(received)
	response.WriteHeader(http.StatusNoContent)
}

func (r *receiver) handle(received event) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.handled[received.ID] {
		return
	}
	// The service waits 15 s for the response: put work that takes longer into a queue.
	fmt.Println(received.Event, received.ID, string(bytes.TrimSpace(received.Data)))
	r.handled[received.ID] = true
	r.oldest = append(r.oldest, received.ID)
	if len(r.oldest) > maxRememberedEvents {
		delete(r.handled, r.oldest[0])
		r.oldest = r.oldest[1:]
	}
}

// Checks Signature, and the Standard Webhooks headers, which also sign the ID and the time.
func (r *receiver) isGenuine(headers http.Header, body []byte) bool {
	id, timestamp := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || age > tolerance || age < -tolerance {
		return false
	}
	signed := append([]byte(id+"."+timestamp+"."), body...)
	// While the application has two secrets, there is an entry for each.
	entries := strings.Split(headers.Get("webhook-signature"), " ")
	return r.isAnyOf([]string{headers.Get("Signature")}, "", sha1.New, body) && r.isAnyOf(entries, "v1,", sha256.New, signed)
}

// Compares in constant time, because the time of a comparison could reveal how much of a guess is right.
func (r *receiver) isAnyOf(given []string, prefix string, algorithm func() hash.Hash, message []byte) bool {
	for _, secret := range r.secrets {
		mac := hmac.New(algorithm, secret)
		mac.Write(message)
		expected := prefix + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, text := range given {
			if hmac.Equal([]byte(text), []byte(expected)) {
				return true
			}
		}
	}
	return false
}

func main() {
	r := &receiver{handled: map[string]bool{}}
	for _, secret := range strings.Split(os.Getenv("APPLICATION_SECRET"), ",") {
		if secret != "" {
			r.secrets = append(r.secrets, []byte(secret))
		}
	}
	if len(r.secrets) == 0 {
		fmt.Fprintln(os.Stderr, "Set APPLICATION_SECRET to the application's secret.")
		os.Exit(1)
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("Waiting for webhooks on http://localhost:%d/\n", listener.Addr().(*net.TCPAddr).Port)
	server := http.Server{Handler: r, ReadTimeout: 30 * time.Second}
	fmt.Fprintln(os.Stderr, server.Serve(listener))
	os.Exit(1)
}
