package sign

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func parsed(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestCommand: the command of the longest prefix is asked for its objects, and no other object.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	script := func(answer string) []string {
		return []string{"/bin/sh", "-c", `cat >> "$0"; printf %s "$1"`, asked, answer}
	}
	rules, err := json.Marshal(map[string][]string{
		"https://a.example/":      script(`{"token": "st=1&sig=x%2B", "msft:expiry": "2099-01-01T00:00:00Z"}`),
		"https://a.example/deep/": script(`{"headers": {"authorization": "Bearer y"}}`),
		"https://b.example/":      {"/bin/sh", "-c", "echo secret >&2; echo secret; exit 3"},
		"https://c.example/":      {filepath.Join(dir, "none")},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "sign.json")
	testfile.Write(t, file, rules)
	t.Setenv(Variable, file)
	s := FromEnv()
	if s != FromEnv() {
		t.Error("two signers of one file")
	}
	for uri, want := range map[string]string{
		"https://a.example/x.tif":       "https://a.example/x.tif?st=1&sig=x%2B",
		"https://A.example/x.tif?v=2":   "https://A.example/x.tif?v=2&st=1&sig=x%2B",
		"https://a.example/deep/x.tif":  "Bearer y",
		"https://a.example.org/x.tif":   "",
		"https://a.example:444/x.tif":   "",
		"http://a.example/x.tif":        "",
		"https://b.example/x.tif":       `!no signature: the command "/bin/sh" ended with exit status 3`,
		"https://c.example/x.tif":       "!no such file",
		"https://x@a.example.org/x.tif": "",
		"https://a.example/d/../x.tif":  "",
		"https://a.example/%2E./x.tif":  "",
		"https://a.example/d/..%2Fx":    "",
		"https://a.example/d/..%5Cx":    "",
	} {
		u := parsed(t, uri)
		got, err := s.Sign(context.Background(), u)
		said, fails := strings.CutPrefix(want, "!")
		if fails {
			if err == nil || !strings.Contains(err.Error(), said) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", uri, err)
			}
			continue
		}
		h := http.Header{}
		got.Set(h)
		if at := got.URL(u).String(); err != nil || (got == nil) != (want == "") || at != want && at != uri ||
			want != "" && at != want && h.Get("Authorization") != want {
			t.Errorf("%s: %s %v %v", uri, at, h, err)
		}
		if text := fmt.Sprintf("%v %+v %#v", got, got, got); got != nil && strings.Contains(text, "sig") {
			t.Errorf("it prints as %s", text)
		}
	}
	b, err := os.ReadFile(asked)
	if err != nil || strings.Count(string(b), "\n") != 2 ||
		!strings.Contains(string(b), `{"uri":"https://a.example/deep/x.tif"}`) {
		t.Errorf("asked %s, %v", b, err)
	}
}

// TestWrongRules: a file that is none is an error of each object, and no prefix sends signatures in plain text.
func TestWrongRules(t *testing.T) {
	dir := t.TempDir()
	for text, says := range map[string]string{
		`[]`: "it must be JSON", `{"https://a/": []}`: "no command", `{"http://a.example/": ["x"]}`: "plain text",
		`{"https://a": ["x"]}`: "is not", `{"https:///b/": ["x"]}`: "is not", `{"s3://b/": ["x"]}`: "plain text",
		`{"https://a/": ["x"], "https://A/": ["x"]}`: "twice",
	} {
		file := filepath.Join(dir, strings.ReplaceAll(text, "/", " "))
		testfile.Write(t, file, []byte(text))
		t.Setenv(Variable, file)
		_, err := FromEnv().Sign(context.Background(), parsed(t, "https://z.example/x"))
		if err == nil || !strings.Contains(err.Error(), says) || remote.Classify(err).Class != remote.Denied {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"fd:0", "fd:x", "fd:999", filepath.Join(dir, "none")} {
		t.Setenv(Variable, text)
		if _, err := FromEnv().Sign(context.Background(), parsed(t, "https://z.example/x")); err == nil {
			t.Errorf("%s is a signer", text)
		}
	}
}

// TestAnswers: the end of a signature is what the answer says in any of its forms.
func TestAnswers(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{ // until
		`{"query": "a=b", "expires": "2030-01-01T01:00:00Z"}`:                   time.Hour,
		`{"token": "a=b", "msft:expiry": "2030-01-01T02:00:00+01:00"}`:          time.Hour,
		`{"headers": {"X": "y"}, "expires_in": 90}`:                             90 * time.Second,
		`{"query": "?se=2030-01-01T00%3A30%3A00Z&sig=x"}`:                       30 * time.Minute,
		`{"url": "https://h/x?X-Amz-Date=20300101T000000Z&X-Amz-Expires=3600"}`: time.Hour,
		`{"url": "https://h/x"}`:                                                100 * 365 * 24 * time.Hour,
		`{"query": "a=b", "expires": "2029-01-01T01:00:00Z"}`:                   minAge,
		`{"query": "a=b", "expires_in": 0}`:                                     minAge,
	} {
		s, err := Parse([]byte(text), start)
		if err != nil || s.until.Sub(start) != want {
			t.Errorf("%.80s: %v", text, err)
		}
	}
	for _, text := range []string{
		`{}`, `[]`, `{"url": "http://h/x"}`, `{"url": "/x"}`, `{"query": "a b"}`, `{"query": "a#b"}`,
		`{"url": "https://h/x", "query": "a=b"}`, `{"headers": {"a b": "c"}}`, `{"headers": {"a": "c\r\nd: e"}}`,
		`{"headers": {"range": "bytes=0-1"}}`, `{"query": "a=b", "expires": "soon"}`,
		`{"query": "a=b", "expires_in": -1}`, `{"query": "` + strings.Repeat("a", maxAnswer) + `"}`,
	} {
		if _, err := Parse([]byte(text), start); err == nil {
			t.Errorf("%.80s is an answer", text)
		}
	}
}

// TestQueriesAreObjects: a signed URL serves its object only, and the query of a URL tells objects apart.
func TestQueriesAreObjects(t *testing.T) {
	s, err := New(Rule{"https://", func(_ context.Context, uri string) ([]byte, error) {
		return fmt.Appendf(nil, `{"url": "%s&sig=1"}`, uri), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{"https://a.example/get?id=1", "https://a.example/get?id=2"} {
		u := parsed(t, uri)
		got, err := s.Sign(context.Background(), u)
		if err != nil || got.URL(u).String() != uri+"&sig=1" {
			t.Errorf("%s is requested as %v, %v", uri, got.URL(u), err)
		}
		if s.entries[" "+uri] == nil || s.entries[" "+uri].signature != got {
			t.Errorf("the signature of %s is not kept", uri)
		}
	}
}

// TestPeer: a process is asked over a socket; an answer that comes too late is passed over.
func TestPeer(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		_, _ = theirs.Write([]byte(`["https://"]` + "\n"))
		in := bufio.NewScanner(theirs)
		for in.Scan() {
			var q question
			if json.Unmarshal(in.Bytes(), &q) != nil {
				return
			}
			answer := fmt.Sprintf(`"answer": {"url": "%s?sig=1"}`, q.URI)
			if strings.Contains(q.URI, "bad") {
				answer = `"error": "ValueError"`
			}
			if strings.Contains(q.URI, "query") {
				answer = `"answer": {"query": "sig=1"}`
			}
			fmt.Fprintf(theirs, "{\"id\": %d, \"answer\": {}}\n{\"id\": %d, %s}\n", q.ID-1, q.ID, answer)
		}
	}()
	s, err := newPeer(ours)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	for _, uri := range []string{"https://a.example/x.tif", "https://b.example/y.tif"} {
		u := parsed(t, uri)
		if got, err := s.Sign(context.Background(), u); err != nil || got.URL(u).String() != uri+"?sig=1" {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for uri, says := range map[string]string{
		"bad": `the function that signs raised "ValueError"`, "query": "for every host",
	} {
		_, err := s.Sign(context.Background(), parsed(t, "https://a.example/"+uri))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// FuzzParse: an answer is refused without its text, or leaves the host of an object as it is, unless it is a URL.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"query": "a=b", "expires": "2030-01-01T01:00:00Z"}`, `{"url": "https://h/x?se=1", "expires_in": 1e300}`,
		`{"headers": {"Authorization": "Bearer x"}, "token": "?x", "msft:expiry": ""}`} {
		f.Add([]byte(s))
	}
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	u := &url.URL{Scheme: "https", Host: "h.example", Path: "/x.tif"}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b, start)
		if err != nil {
			return
		}
		again, err := url.Parse(s.URL(u).String())
		if err != nil || !private(again) || s.url == nil && (again.Host != u.Host || again.Path != u.Path) {
			t.Fatalf("%q: %v, %v", b, again, err)
		}
		if s.until.Before(start.Add(minAge)) || s.renew.After(s.until) && s.until.Sub(start) > minAge {
			t.Fatalf("%q: renewed %v, until %v", b, s.renew, s.until)
		}
	})
}

// TestAFileThatHangs: who needs the rules of a file that hangs waits for them, and nobody else does.
func TestAFileThatHangs(t *testing.T) {
	dir := t.TempDir()
	pipe, other := filepath.Join(dir, "pipe"), filepath.Join(dir, "other")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip(err) // a system without named pipes
	}
	testfile.Write(t, other, []byte(`{"https://a.example/": ["true"]}`))
	t.Setenv(Variable, pipe)
	hangs := make(chan *Signer)
	go func() { hangs <- FromEnv() }()
	for { // until the file is being opened
		if _, found := known.Load(pipe); found {
			break
		}
		runtime.Gosched()
	}
	t.Setenv(Variable, other)
	if s := FromEnv(); s == nil || s.err != nil {
		t.Errorf("%+v", s)
	}
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = writer.WriteString(`{"https://b.example/": ["true"]}`)
	if err = errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	if s := <-hangs; s == nil || s.err != nil {
		t.Errorf("%+v", s)
	}
}
