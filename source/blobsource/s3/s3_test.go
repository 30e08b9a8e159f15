package s3

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type store struct{ *fakes3.Store }

func newStore(t *testing.T) store {
	t.Helper()
	return store{fakes3.Start(t, "chips")}
}

func (s store) put(t *testing.T, key string, b []byte) {
	t.Helper()
	if err := s.Put(key, b); err != nil {
		t.Fatal(err)
	}
}

var quick = remote.Options{
	Attempts: 3, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond,
	Timeout: 5 * time.Minute, Block: 1024,
}

func (s store) open(t *testing.T) *remote.Opener {
	t.Helper()
	o, err := blobsource.New(New(Options{Endpoint: s.URL, Region: "us-east-1"}), quick)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func readAt(r source.Reader, off int64, n int) ([]byte, error) {
	b := make([]byte, n)
	return b, r.ReadAt(context.Background(), b, off)
}

func TestReads(t *testing.T) {
	s := newStore(t)
	o := s.open(t)
	ctx := context.Background()
	for _, size := range []int{0, 1, 1024, 1025, 50_000} {
		b := noise(size)
		key := fmt.Sprintf("a dir/ü+%d.tif", size)
		s.put(t, key, b)
		r, err := o.Open(ctx, "s3://chips/"+key)
		if err != nil {
			t.Fatal(err)
		}
		if r.Size() != int64(size) || size > 0 && source.ETag(r) == "" {
			t.Errorf("size %d, want %d, tag %q", r.Size(), size, source.ETag(r))
		}
		k, err := o.OpenKnown(ctx, "s3://chips/"+key, source.Known{Size: int64(size), ETag: source.ETag(r)})
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range [][2]int{{0, size}, {size / 2, size / 4}, {max(size-10, 0), min(10, size)}} {
			for _, r := range []source.Reader{r, k} {
				if got, err := readAt(r, int64(at[0]), at[1]); err != nil || !bytes.Equal(got, b[at[0]:at[0]+at[1]]) {
					t.Errorf("%d bytes at %d of %d: %v", at[1], at[0], size, err)
				}
			}
		}
	}
	for uri, kind := range map[string]fault.Kind{
		"s3://chips/none":    fault.NotFound,
		"s3://nobucket/none": fault.NotFound,
		"s3://chips":         fault.Unsupported,
		"s3://":              fault.Unsupported,
	} {
		if _, err := o.Open(ctx, uri); fault.KindOf(err) != kind || err == nil || !strings.Contains(err.Error(), uri) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestRequests: opening takes one request, reading a range one, and the SDK repeats none by itself.
func TestRequests(t *testing.T) {
	s := newStore(t)
	o := s.open(t)
	s.put(t, "a", noise(50_000))
	before := s.Requests()
	r, err := o.Open(context.Background(), "s3://chips/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAt(r, 20_000, 10_000); err != nil {
		t.Fatal(err)
	}
	if n := s.Requests() - before; n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	unavailable := func(w http.ResponseWriter, _ *http.Request, _ int64) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	s.Answer(unavailable)
	before = s.Requests()
	_, err = readAt(r, 30_000, 10_000)
	if err == nil || fault.KindOf(err) != 0 || !strings.Contains(err.Error(), "3 attempts") {
		t.Error(err)
	}
	if n := s.Requests() - before; n != 3 {
		t.Errorf("%d requests, want 3 attempts", n)
	}
}

// TestFaults: the driver checks answers itself.
func TestFaults(t *testing.T) {
	s := newStore(t)
	o := s.open(t)
	b := noise(50_000)
	s.put(t, "a", b)
	r, err := o.Open(context.Background(), "s3://chips/a")
	if err != nil {
		t.Fatal(err)
	}
	reply := func(status int, h map[string]string, body []byte) func(http.ResponseWriter, *http.Request, int64) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ int64) bool {
			for k, v := range h {
				w.Header().Set(k, v)
			}
			w.WriteHeader(status)
			_, _ = w.Write(body)
			return true
		}
	}
	part := b[20_000:30_000]
	tag := source.ETag(r)
	for _, c := range []struct {
		name  string
		reply func(http.ResponseWriter, *http.Request, int64) bool
		kind  fault.Kind
	}{
		{"forbidden", reply(403, nil, []byte("<Error><Code>AccessDenied</Code><Message>no</Message></Error>")), 0},
		{"another range", reply(206, map[string]string{"Content-Range": "bytes 0-9999/50000", "ETag": tag}, part), 0},
		{"no range", reply(200, map[string]string{"ETag": tag}, b), fault.Unsupported},
		{
			"another tag",
			reply(206, map[string]string{"Content-Range": "bytes 20000-29999/50000", "ETag": `"x"`}, part),
			fault.Corrupt,
		},
		{
			"another size",
			reply(206, map[string]string{"Content-Range": "bytes 20000-29999/50001", "ETag": tag}, part),
			fault.Corrupt,
		},
		{"changed", reply(412, nil, []byte("<Error><Code>PreconditionFailed</Code></Error>")), fault.Corrupt},
		{"past the end", reply(416, nil, []byte("<Error><Code>InvalidRange</Code></Error>")), fault.Corrupt},
		{"a redirect", reply(307, map[string]string{"Location": "http://127.0.0.1:1/"}, nil), 0},
		{"not XML", reply(500, nil, []byte("\x00\x01")), 0},
	} {
		s.Answer(c.reply)
		got, err := readAt(r, 20_000, 10_000)
		if err == nil || fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", c.name, err)
		}
		_ = got
		s.Answer(nil)
		if got, err := readAt(r, 20_000, 10_000); err != nil || !bytes.Equal(got, part) {
			t.Errorf("after %s: %v", c.name, err)
		}
	}
}

func TestChangedObject(t *testing.T) {
	s := newStore(t)
	o := s.open(t)
	s.put(t, "a", noise(50_000))
	r, err := o.Open(context.Background(), "s3://chips/a")
	if err != nil {
		t.Fatal(err)
	}
	other := noise(50_000)
	other[0]++
	s.put(t, "a", other)
	if _, err := readAt(r, 20_000, 10_000); fault.KindOf(err) != fault.Corrupt {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	s := newStore(t)
	o := s.open(t)
	var want []string
	for i := range 1203 { // more than a page
		want = append(want, fmt.Sprintf("sub/%04d.tif", i))
		s.put(t, "data/"+want[i], noise(i%7))
	}
	s.put(t, "database/x.tif", nil)
	s.put(t, "data/", nil) // what consoles make for a folder
	for _, folder := range []string{"s3://chips/data", "s3://chips/data/"} {
		var got []string
		err := o.List(context.Background(), folder, func(e source.Entry) error {
			if e.ETag == "" {
				t.Errorf("%s has no tag", e.Path)
			}
			if len(got) < 1203 && e.Size != int64(len(got)%7) {
				t.Errorf("%s: size %d", e.Path, e.Size)
			}
			got = append(got, e.Path)
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d objects, want %d: %v", folder, len(got), len(want), err)
		}
	}
	r, err := o.Open(context.Background(), "s3://chips/data/sub/0005.tif")
	if err != nil {
		t.Fatal(err)
	}
	err = o.List(context.Background(), "s3://chips/data", func(e source.Entry) error {
		if e.Path == "sub/0005.tif" && e.ETag != source.ETag(r) {
			t.Errorf("a listing has the tag %s, an answer %s", e.ETag, source.ETag(r))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRequesterPays: each request says that its account pays, where the options or the environment say so, and no
// other.
func TestRequesterPays(t *testing.T) {
	s := newStore(t)
	s.put(t, "a", noise(5000))
	for _, c := range []struct {
		env  string
		o    Options
		want string
	}{
		{"", Options{}, ""}, {"requester", Options{}, "requester"}, {"no", Options{}, ""},
		{"", Options{RequesterPays: true}, "requester"},
	} {
		t.Setenv("AWS_REQUEST_PAYER", c.env)
		var said []string
		s.Answer(func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
			said = append(said, r.Header.Get("X-Amz-Request-Payer"))
			return false
		})
		c.o.Endpoint, c.o.Region = s.URL, "us-east-1"
		o, err := blobsource.New(New(c.o), quick)
		if err != nil {
			t.Fatal(err)
		}
		r, err := o.Open(t.Context(), "s3://chips/a")
		if err == nil {
			_, err = readAt(r, 3000, 100)
		}
		if err == nil {
			err = o.List(t.Context(), "s3://chips", func(source.Entry) error { return nil })
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || len(said) < 3 || slices.ContainsFunc(said, func(s string) bool { return s != c.want }) {
			t.Errorf("%+v: %q, %v", c, said, err)
		}
		s.Answer(nil)
	}
}
