package netsim

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask requests bytes 10 to 19 of an object.
func ask(t *testing.T, client *http.Client, url string) (*http.Response, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Range", "bytes=10-19")
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// TestServer: ranges are those of the object, with its tag, and each fault makes another answer.
func TestServer(t *testing.T) {
	server := NewServer(false)
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	data := bytes.Repeat([]byte("0123456789abcdef"), 8)
	server.Put("/a", data)
	resp, body, err := ask(t, client, server.URL+"/a")
	if err != nil || resp.StatusCode != http.StatusPartialContent || !bytes.Equal(body, data[10:20]) ||
		resp.Header.Get("Content-Range") != "bytes 10-19/128" || resp.Header.Get("ETag") != ETag(data) {
		t.Fatalf("%+v, %q, %v", resp, body, err)
	}
	for fault, status := range map[Fault]int{
		Unavailable: 503, TooMany: 429, ServerError: 500, NotFound: 404, Forbidden: 403, PastEnd: 416, Failed: 412,
		Whole: 200,
	} {
		server.Always(fault)
		if resp, _, err := ask(t, client, server.URL+"/a"); err != nil || resp.StatusCode != status {
			t.Errorf("%s: %+v, %v", fault, resp, err)
		}
	}
	for _, fault := range []Fault{ShortBody, Reset, Garbage, RedirectLoop} {
		server.Always(fault)
		if _, body, err := ask(t, client, server.URL+"/a"); err == nil {
			t.Errorf("%s: %q", fault, body)
		}
	}
	for _, fault := range []Fault{ShortRange, WrongRange, BadRange, OtherTag, OtherSize, NoSize, Gzip, Multipart} {
		server.Always(fault)
		resp, body, err := ask(t, client, server.URL+"/a")
		if err == nil && bytes.Equal(body, data[10:20]) && resp.Header.Get("Content-Range") == "bytes 10-19/128" &&
			resp.Header.Get("ETag") == ETag(data) && resp.Header.Get("Content-Encoding") == "" &&
			!strings.HasPrefix(resp.Header.Get("Content-Type"), "multipart/") {
			t.Errorf("%s: an answer without a fault", fault)
		}
	}
	server.OnRequest(func(n int, _ *http.Request) Fault { return map[int]Fault{1: Forbidden}[n] })
	for n, status := range []int{206, 403, 206} {
		if resp, _, err := ask(t, client, server.URL+"/a"); err != nil || resp.StatusCode != status {
			t.Errorf("request %d: %+v, %v", n, resp, err)
		}
	}
	if n := len(server.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// TestLink: an answer takes a round trip at least, and as long as its bytes do at the rate.
func TestLink(t *testing.T) {
	server := NewServer(false)
	defer server.Close()
	server.Put("/a", make([]byte, 40_000))
	const roundTrip, rate = 40 * time.Millisecond, 400_000
	link, err := NewLink(strings.TrimPrefix(server.URL, "http://"), roundTrip, rate)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	begun := time.Now()
	resp, err := client.Get("http://" + link.Addr + "/a") //nolint:noctx // it is on this host
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	least := roundTrip + 40_000*time.Second/rate
	if took := time.Since(begun); err != nil || len(body) != 40_000 || took < least*9/10 {
		t.Errorf("%d bytes in %v, %v; want %v at least", len(body), took, err, least)
	}
}
