package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Client is an authenticated caller and its permissions.
type Client struct {
	// Name stands in the log. It is not secret.
	Name string `json:"name"`
	// Roots are the directories, and prefixes of remote URIs, that it may read, below the roots of the server. nil: all
	// of the server's.
	Roots []string `json:"roots,omitempty"`
	Limits
}

// Limits bound the resources of a client. 0 is the default of the server.
type Limits struct {
	Streams  int   `json:"streams,omitempty"`
	Datasets int   `json:"datasets,omitempty"`
	Rate     int64 `json:"rate,omitempty"` // bytes a second
}

func (l Limits) check() error {
	if l.Streams < 0 || l.Datasets < 0 || l.Rate < 0 {
		return fmt.Errorf("streams is %d, datasets %d, rate %d: none may be negative", l.Streams, l.Datasets, l.Rate)
	}
	return nil
}

// line is a line of a file of tokens.
type line struct {
	Client
	SHA256  string     `json:"sha256"`
	Expires *time.Time `json:"expires,omitempty"`
}

// Prefix begins every token that NewToken makes, so tools that look for secrets in repositories find it.
const Prefix = "chaski_"

// tokenBytes is the entropy of a token.
const tokenBytes = 32

// NewToken returns a random token.
func NewToken() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // it never fails
	return Prefix + base64.RawURLEncoding.EncodeToString(b)
}

// Line returns the line of a token in a file of tokens, without the end of the line. It holds no secret. A zero time
// never expires.
func Line(token string, c Client, expires time.Time) (string, error) {
	sum := sha256.Sum256([]byte(token))
	written := line{Client: c, SHA256: hex.EncodeToString(sum[:])}
	if !expires.IsZero() {
		expires = expires.UTC().Truncate(time.Second)
		written.Expires = &expires
	}
	if _, err := written.check(); err != nil {
		return "", err
	}
	b, err := json.Marshal(written)
	return string(b), err
}

// tokenEntry is a token that lets a client in.
type tokenEntry struct {
	client  Client
	sum     [sha256.Size]byte
	expires time.Time // zero: never
}

// Tokens has the tokens of a file.
type Tokens struct{ list []tokenEntry }

// ParseTokens reads a file of tokens: one JSON object a line, as Line writes them. Empty lines, and those that begin
// with "#", are left out.
func ParseTokens(b []byte) (*Tokens, error) {
	tokens := &Tokens{}
	for i, text := range strings.Split(string(b), "\n") {
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		known, err := parseLine(text)
		if err != nil {
			// The text of the line is left out, since somebody may have put the token itself there.
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		for _, other := range tokens.list {
			if other.sum == known.sum {
				return nil, fmt.Errorf("line %d: the same token is that of %q above", i+1, other.client.Name)
			}
		}
		tokens.list = append(tokens.list, known)
	}
	return tokens, nil
}

func parseLine(text string) (tokenEntry, error) {
	var l line
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&l); err != nil {
		// A decoder's own text may show what stands there.
		return tokenEntry{}, errors.New(`it is not an object with "name", "sha256", "roots", "streams", "datasets", ` +
			`"rate" and "expires"`)
	}
	if decoder.More() {
		return tokenEntry{}, errors.New("it has more than one object")
	}
	return l.check()
}

// maxName bounds the name of a client, which stands in every line of the audit log.
const maxName = 128

func checkName(name string) error {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, control) {
		return fmt.Errorf("the name must have 1 to %d bytes, and no control characters", maxName)
	}
	return nil
}

func (l line) check() (tokenEntry, error) {
	checked := tokenEntry{client: l.Client}
	if err := checkName(l.Name); err != nil {
		return checked, err
	}
	sum, err := hex.DecodeString(l.SHA256)
	if err != nil || len(sum) != len(checked.sum) {
		return checked, errors.New("sha256 must have 64 hexadecimal digits")
	}
	copy(checked.sum[:], sum)
	if l.Expires != nil {
		checked.expires = *l.Expires
	}
	return checked, l.Limits.check()
}

// find returns the client of a token. Every line is compared in constant time, so the duration does not reveal how
// much of a hash was right.
func (t *Tokens) find(sum [sha256.Size]byte) (Client, bool) {
	var found *tokenEntry
	for i := range t.list {
		if subtle.ConstantTimeCompare(sum[:], t.list[i].sum[:]) == 1 {
			found = &t.list[i]
		}
	}
	if found == nil || !found.expires.IsZero() && !time.Now().Before(found.expires) {
		return Client{}, false
	}
	return found.client, true
}
