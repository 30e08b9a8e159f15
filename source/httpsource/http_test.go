package httpsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick is the default policy with shorter waits, for tests. An answer has minutes, as a busy machine may be slow: what
// never answers is for the tests in a bubble of time.
var quick = remote.Options{
	Attempts: 3, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, Timeout: 5 * time.Minute,
	MinRate: 1 << 30, Stall: 5 * time.Minute, RetryBurst: 1000, Block: 1024, Gap: 1 << 20,
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func serve(t *testing.T, o remote.Options) (*netsim.Server, *remote.Opener) {
	t.Helper()
	s := netsim.NewServer(false)
	h, err := New(Options{Options: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close() // first: what is given up then ends
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, h
}

// inBubble runs f in a bubble of time, with a server in memory and an opener whose answers have 150 ms, or as long as o
// says if that has a Stall of its own.
func inBubble(t *testing.T, o remote.Options, f func(t *testing.T, s *netsim.Server, o *remote.Opener)) {
	t.Helper()
	if o.Stall == quick.Stall {
		o.Timeout = 150 * time.Millisecond
	}
	synctest.Test(t, func(t *testing.T) {
		var net netsim.Network
		s, transport := net.NewServer(), newTransport(8)
		transport.Proxy, transport.DialContext = nil, net.DialContext
		h, err := New(Options{Options: o, Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			s.Close() // first: what is given up then ends
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			transport.CloseIdleConnections()
		}()
		f(t, s, h)
	})
}

func open(t *testing.T, o source.Opener, uri string) source.Reader {
	t.Helper()
	r, err := o.Open(context.Background(), uri)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readAt(r source.Reader, off int64, n int) ([]byte, error) {
	b := make([]byte, n)
	return b, r.ReadAt(context.Background(), b, off)
}

// TestReads: every kind of range has the bytes that were stored, over HTTP/1 and HTTP/2.
func TestReads(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := netsim.NewServer(secure)
		o, err := New(Options{Options: quick, Transport: s.Client().Transport})
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{0, 1, 1023, 1024, 1025, 5000, 100_000} {
			b := noise(size)
			path := fmt.Sprintf("/dir/a %d.tif", size)
			s.Put(path, b)
			r := open(t, o, s.URL+path)
			if r.Size() != int64(size) {
				t.Fatalf("size %d, want %d", r.Size(), size)
			}
			known, err := o.OpenKnown(context.Background(), s.URL+path, source.Known{
				Size: int64(size), ETag: source.ETag(r),
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range [][2]int{
				{0, 0},
				{0, 1},
				{0, size},
				{size, 0},
				{size - 1, 1},
				{size / 2, size / 3},
				{1000, 100},
				{1500, 1100},
				{size - 900, 300},
			} {
				if at[0] < 0 || at[1] < 0 || at[0]+at[1] > size {
					continue
				}
				for _, r := range []source.Reader{r, known} {
					got, err := readAt(r, int64(at[0]), at[1])
					if err != nil || !bytes.Equal(got, b[at[0]:at[0]+at[1]]) {
						t.Errorf("secure %v: %d bytes at %d of %d: %v", secure, at[1], at[0], size, err)
					}
				}
			}
			for _, at := range [][2]int64{{-1, 1}, {0, int64(size) + 1}, {int64(size), 1}, {1 << 62, 4}} {
				if _, err := readAt(r, at[0], int(at[1])); fault.KindOf(err) != fault.Corrupt {
					t.Errorf("%d bytes at %d of %d: %v", at[1], at[0], size, err)
				}
			}
		}
		s.Close()
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFewRequests: opening takes one request, and small reads in the head and in the tail one more.
func TestFewRequests(t *testing.T) {
	s, o := serve(t, quick)
	b := noise(50_000)
	s.Put("/a", b)
	s.Always(netsim.None)
	r := open(t, o, s.URL+"/a")
	for _, at := range []int64{0, 8, 300, 1000, 49_992, 49_100, 49_500} {
		if got, err := readAt(r, at, 8); err != nil || !bytes.Equal(got, b[at:at+8]) {
			t.Fatalf("at %d: %v", at, err)
		}
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests, want one of the head and one of the tail", n)
	}
	open(t, o, s.URL+"/a")
	if n := len(s.Requests()); n != 2 {
		t.Errorf("opened again with a request")
	}
	s.Always(netsim.None)
	k, err := o.OpenKnown(context.Background(), s.URL+"/a", source.Known{Size: 50_000, ETag: netsim.ETag(b)})
	if err != nil || len(s.Requests()) != 0 {
		t.Fatalf("%v, %d requests to open what is known", err, len(s.Requests()))
	}
	for _, at := range []int64{7, 20_000} { // the first bytes came when the object was opened
		if _, err := readAt(k, at, 3); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Requests()
	if len(got) != 1 || got[0].Header.Get("Range") != "bytes=20000-20002" ||
		got[0].Header.Get("If-Match") != netsim.ETag(b) {
		t.Errorf("requests %v", got)
	}
}

// outcome is the expected result of a fault.
type outcome struct {
	once, always fault.Kind // 0: no error once, an error without a kind always
	onceFails    bool       // an error without a kind
	works        bool       // no error, once and always
}

var outcomes = map[netsim.Fault]outcome{
	netsim.Unavailable:  {},
	netsim.TooMany:      {},
	netsim.ServerError:  {},
	netsim.ShortBody:    {},
	netsim.ShortRange:   {},
	netsim.WrongRange:   {},
	netsim.BadRange:     {},
	netsim.Stall:        {},
	netsim.StallBody:    {},
	netsim.Drip:         {},
	netsim.Reset:        {},
	netsim.Garbage:      {},
	netsim.Extra:        {},
	netsim.PastEnd:      {}, // without the size of the object, which alone says that it is shorter
	netsim.NotFound:     {once: fault.NotFound, always: fault.NotFound},
	netsim.Forbidden:    {onceFails: true},
	netsim.Gzip:         {once: fault.Unsupported, always: fault.Unsupported},
	netsim.Multipart:    {once: fault.Unsupported, always: fault.Unsupported},
	netsim.Whole:        {works: true},
	netsim.RedirectAway: {once: fault.Unsupported, always: fault.Unsupported},
	netsim.RedirectLoop: {always: fault.Unsupported},
}

// TestEveryCallFailsOnce: each request of a read fails in turn, in each way, once and permanently.
// The read returns the right bytes, or the error of the policy, soon.
func TestEveryCallFailsOnce(t *testing.T) { inBubble(t, quick, everyCallFailsOnce) }

func everyCallFailsOnce(t *testing.T, s *netsim.Server, o *remote.Opener) {
	s.SetAway("http://127.0.0.1:1")
	// A read also detects that the object was replaced.
	read := map[netsim.Fault]outcome{
		netsim.Failed:    {once: fault.Corrupt, always: fault.Corrupt},
		netsim.OtherTag:  {once: fault.Corrupt, always: fault.Corrupt},
		netsim.OtherSize: {once: fault.Corrupt, always: fault.Corrupt},
	}
	maps.Copy(read, outcomes)
	opening := map[netsim.Fault]outcome{netsim.NoSize: {once: fault.Unsupported, always: fault.Unsupported}}
	maps.Copy(opening, outcomes)
	b := noise(20_000)
	run := func(name string, call int, f netsim.Fault, always bool, want outcome) {
		path := "/" + strings.NewReplacer(" ", "-", ":", "").Replace(name)
		s.Put(path, b)
		s.OnRequest(func(n int, _ *http.Request) netsim.Fault {
			if n == call || always && n > call {
				return f
			}
			return netsim.None
		})
		start := time.Now()
		err := func() error {
			r, err := o.Open(context.Background(), s.URL+path)
			if err != nil {
				return err
			}
			for _, at := range [][2]int{{0, 20}, {5000, 4000}, {9000, 30}} {
				got, err := readAt(r, int64(at[0]), at[1])
				if err != nil {
					return err
				}
				if !bytes.Equal(got, b[at[0]:at[0]+at[1]]) {
					t.Errorf("%s: wrong bytes", name)
				}
			}
			return nil
		}()
		// Each request has three attempts of at most 150 ms and the time of its bytes, and waits of at most 5 ms.
		if d := time.Since(start); d > 4*(3*150+2*5+1)*time.Millisecond {
			t.Errorf("%s: took %v", name, d)
		}
		kind, fails := want.once, want.onceFails || want.once != 0
		if always {
			kind, fails = want.always, !want.works
		}
		if (err != nil) != fails || fault.KindOf(err) != kind {
			t.Errorf("%s: %v, want an error %v of kind %d", name, err, fails, kind)
		}
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), s.URL+path) {
			t.Errorf("%s: %v does not name the object", name, err)
		}
		var re *fault.RequestError
		if kind == 0 && (!errors.As(err, &re) || re.Part != "byte range" || !strings.Contains(err.Error(), "attempt")) {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v passes for the caller's", name, err)
		}
	}
	for _, always := range []bool{false, true} {
		for f, want := range opening {
			run(fmt.Sprintf("opening, always %v: %s", always, f), 0, f, always, want)
		}
		for f, want := range read {
			for call := 1; call <= 2; call++ {
				run(fmt.Sprintf("read %d, always %v: %s", call, always, f), call, f, always, want)
			}
		}
	}
}

// TestWholeObjectsThatAreSmall: a server without ranges is no problem if the head is the whole
// object.
func TestWholeObjectsThatAreSmall(t *testing.T) {
	s, o := serve(t, quick)
	b := noise(1024)
	s.Put("/a", b)
	s.Always(netsim.Whole)
	if got, err := readAt(open(t, o, s.URL+"/a"), 100, 900); err != nil || !bytes.Equal(got, b[100:1000]) {
		t.Error(err)
	}
}

// TestWholeObjects: from a server without ranges, objects are read as a whole, once while they are
// cached, in bounded memory. Larger objects are refused with their size.
func TestWholeObjects(t *testing.T) {
	p := quick
	p.WholeBytes, p.MaxWhole = 250_000, 120_000
	s, o := serve(t, p)
	s.Always(netsim.Whole)
	var objects [][]byte
	var readers []source.Reader
	for i := range 4 {
		b := noise(100_000 + i)
		objects = append(objects, b)
		s.Put(fmt.Sprint("/", i), b)
		if i == 3 { // its size is known: no request is made before it is read
			k, err := o.OpenKnown(context.Background(), s.URL+"/3", source.Known{Size: int64(len(b))})
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, k)
			continue
		}
		readers = append(readers, open(t, o, s.URL+fmt.Sprint("/", i)))
	}
	if n := len(s.Requests()); n != 6 { // of which one each says that there are no ranges
		t.Errorf("%d requests to open three objects", n)
	}
	for range 3 {
		for i, b := range objects {
			before := len(s.Requests())
			for off := 0; off+30_000 <= len(b); off += 17_000 {
				got, err := readAt(readers[i], int64(off), 30_000)
				if err != nil || !bytes.Equal(got, b[off:off+30_000]) {
					t.Fatalf("%d at %d: %v", i, off, err)
				}
			}
			if n := len(s.Requests()) - before; n > 2 {
				t.Errorf("%d requests for many reads of one object", n)
			}
			if n := o.WholeBytes(); n > 250_000 || n < 100_000 {
				t.Errorf("%d bytes are kept", n)
			}
		}
	}
	s.Put("/large", noise(130_000))
	_, err := o.Open(context.Background(), s.URL+"/large")
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "byte ranges") ||
		!strings.Contains(err.Error(), "130000") || !strings.Contains(err.Error(), "120000") {
		t.Errorf("an object that is too large: %v", err)
	}
	for _, size := range []int64{99_999, 100_001} {
		k, err := o.OpenKnown(context.Background(), s.URL+"/0", source.Known{Size: size})
		if err != nil {
			t.Fatal(err)
		}
		_, err = readAt(k, 70_000, 20_000)
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "100000") {
			t.Errorf("an object of 100,000 bytes, known to have %d: %v", size, err)
		}
	}
	// A repeated read gets the same object, or detects that it was replaced.
	other := append([]byte(nil), objects[0]...)
	other[50_000]++
	s.Put("/0", other)
	if _, err := readAt(readers[0], 0, 40_000); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("another object: %v", err)
	}
}

// TestChangedObject: a change is noticed between two reads of a reader, and before the first read
// of an object that a catalog lists.
func TestChangedObject(t *testing.T) {
	s, o := serve(t, quick)
	s.Put("/a", noise(20_000))
	r := open(t, o, s.URL+"/a")
	k, err := o.OpenKnown(context.Background(), s.URL+"/a", source.Known{Size: 20_000, ETag: source.ETag(r)})
	if err != nil {
		t.Fatal(err)
	}
	same := noise(20_000)
	same[15_000]++
	s.Put("/a", same)
	for _, r := range []source.Reader{r, k} {
		_, err := readAt(r, 15_000, 2000)
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "another one") {
			t.Errorf("%v", err)
		}
	}
	if got, err := readAt(open(t, o, s.URL+"/a"), 15_000, 2000); err != nil || !bytes.Equal(got, same[15_000:17_000]) {
		t.Errorf("opened again: %v", err)
	}
	k, err = o.OpenKnown(context.Background(), s.URL+"/a", source.Known{Size: 19_999})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAt(k, 0, 5); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("another size than known: %v", err)
	}
}

func TestRedirects(t *testing.T) {
	s, o := serve(t, quick)
	other, _ := serve(t, quick)
	b := noise(3000)
	s.Put("/a", b)
	other.Put("/a", b)
	s.SetAway(other.URL)
	s.Always(netsim.RedirectHere)
	if got, err := readAt(open(t, o, s.URL+"/a"), 2000, 1000); err != nil || !bytes.Equal(got, b[2000:]) {
		t.Errorf("on the host: %v", err)
	}
	s.Always(netsim.RedirectAway)
	_, err := o.Open(context.Background(), s.URL+"/b")
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "another host") {
		t.Errorf("to another host: %v", err)
	}
	if len(other.Requests()) != 0 {
		t.Error("the other host was asked")
	}
	free, err := New(Options{Options: quick, OtherHosts: true})
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	if got, err := readAt(open(t, free, s.URL+"/a"), 2000, 1000); err != nil || !bytes.Equal(got, b[2000:]) {
		t.Errorf("where that is allowed: %v", err)
	}
}

func TestHub(t *testing.T) {
	hub, _ := serve(t, quick)
	b := noise(3000)
	hub.Put("/datasets/owner/name/resolve/main/data/a b.tif", b)
	hub.Put("/datasets/owner/name/resolve/refs/pr/1/x.tif", b)
	o, err := New(Options{Options: quick, HubURL: hub.URL, HubToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	hub.Always(netsim.None)
	for _, uri := range []string{
		"hf://datasets/owner/name/data/a b.tif", "hf://datasets/owner/name@main/data/a b.tif",
		"hf://datasets/owner/name@refs/pr/1/x.tif", "hf://datasets/owner/name@refs%2Fpr%2F1/x.tif",
	} {
		if got, err := readAt(open(t, o, uri), 1000, 2000); err != nil || !bytes.Equal(got, b[1000:]) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for _, r := range hub.Requests() {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s without the token", r.URL)
		}
	}
	for _, uri := range []string{
		"hf://models/owner/name/a", "hf://datasets/owner/name", "hf://datasets/owner/name@/a", "hf://datasets//name/a",
		"hf://datasets/owner/name/../../x", "hf://datasets/owner/name@main",
	} {
		if _, err := o.Open(context.Background(), uri); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", uri, err)
		}
	}
	// The token goes to no other host, and the hub may redirect only to its own stores.
	plain, _ := serve(t, quick)
	plain.Put("/datasets/owner/name/resolve/main/c", b)
	hub.SetAway(plain.URL)
	hub.Always(netsim.RedirectAway)
	if _, err := o.Open(context.Background(), "hf://datasets/owner/name/c"); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a redirect of the hub to elsewhere: %v", err)
	}
	free, err := New(Options{Options: quick, HubURL: hub.URL, HubToken: "secret", OtherHosts: true})
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	plain.Always(netsim.None)
	open(t, free, "hf://datasets/owner/name/c")
	before := len(hub.Requests())
	k, err := free.OpenKnown(context.Background(), "hf://datasets/owner/name/c", source.Known{Size: 3000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 { // the hub is not asked again where the file is
		if got, err := readAt(k, int64(i), 500); err != nil || !bytes.Equal(got, b[i:i+500]) {
			t.Error(err)
		}
	}
	if n := len(hub.Requests()) - before; n != 0 {
		t.Errorf("%d requests to the hub", n)
	}
	plain.OnRequest(func(n int, _ *http.Request) netsim.Fault { // until the signature is over
		if n == 0 {
			return netsim.Forbidden
		}
		return netsim.None
	})
	if got, err := readAt(k, 7, 500); err != nil || !bytes.Equal(got, b[7:507]) {
		t.Error(err)
	}
	if n := len(hub.Requests()) - before; n != 1 {
		t.Errorf("%d requests to the hub for a new signature", n)
	}
	for _, r := range plain.Requests() {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token went to another host")
		}
	}
}

// TestRetryBudget: an outage does not multiply the requests.
func TestRetryBudget(t *testing.T) {
	p := quick
	p.RetryBurst, p.RetryShare, p.Attempts = 5, 0.1, 4
	s, o := serve(t, p)
	s.Always(netsim.Unavailable)
	const calls = 50
	var last error
	for i := range calls {
		_, last = o.Open(context.Background(), fmt.Sprintf("%s/%d", s.URL, i))
	}
	if n := len(s.Requests()); n != calls+5 {
		t.Errorf("%d requests for %d calls, want 5 more", n, calls)
	}
	if last == nil || !strings.Contains(last.Error(), "too many requests to this host fail") ||
		!strings.Contains(last.Error(), "1 attempt") {
		t.Errorf("%v", last)
	}
}

// TestStalledBodies: a body that stops is asked for again after Stall, and one that goes on slowly is not, however long
// an answer may take.
func TestStalledBodies(t *testing.T) {
	o := quick
	o.Timeout, o.Stall = time.Hour, 3*time.Second
	inBubble(t, o, func(t *testing.T, s *netsim.Server, o *remote.Opener) {
		b := noise(500)
		s.Put("/a", b)
		for fault, requests := range map[netsim.Fault]int{netsim.StallBody: 2, netsim.Drip: 1} {
			s.OnRequest(func(n int, _ *http.Request) netsim.Fault { // it counts anew
				if n == 0 {
					return fault
				}
				return netsim.None
			})
			begun := time.Now()
			r, err := o.OpenKnown(t.Context(), s.URL+"/a", source.Known{Size: int64(len(b))})
			if err != nil {
				t.Fatal(err)
			}
			got, err := readAt(r, 0, len(b))
			if took := time.Since(begun); err != nil || !bytes.Equal(got, b) || took < 3*time.Second ||
				took > 11*time.Second || len(s.Requests()) != requests {
				t.Errorf("%s: %v after %v, by %d requests", fault, err, took, len(s.Requests()))
			}
		}
	})
}

// TestConcurrencyIsLimited: requests in flight are limited, and cancelling ends the reads that
// wait.
func TestConcurrencyIsLimited(t *testing.T) {
	p := quick
	p.Concurrency, p.Timeout = 2, time.Hour
	s, o := serve(t, p)
	s.Always(netsim.Stall)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	for i := range 6 {
		go func() {
			_, err := o.Open(ctx, fmt.Sprintf("%s/%d", s.URL, i))
			done <- err
		}()
	}
	for len(s.Requests()) < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	for range 6 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests at a time, want 2", n)
	}
}

// TestOpenedOnce: many concurrent opens of one object make one request, and one caller that gives
// up delays no other.
func TestOpenedOnce(t *testing.T) {
	p := quick
	p.Timeout = time.Minute
	s, o := serve(t, p)
	s.Put("/a", noise(5000))
	s.OnRequest(func(n int, _ *http.Request) netsim.Fault {
		if n == 0 {
			return netsim.Stall
		}
		return netsim.None
	})
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error)
	go func() {
		_, err := o.Open(ctx, s.URL+"/a")
		first <- err
	}()
	for len(s.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	others := make(chan error)
	for range 8 {
		go func() {
			_, err := o.Open(context.Background(), s.URL+"/a")
			others <- err
		}()
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 8 {
		if err := <-others; err != nil {
			t.Error(err)
		}
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestNoListing(t *testing.T) {
	_, o := serve(t, quick)
	err := o.List(context.Background(), "https://host/a", func(source.Entry) error { return nil })
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "no listing") {
		t.Error(err)
	}
}

// TestCacheIsBounded: opening many objects keeps a bounded number of them.
func TestCacheIsBounded(t *testing.T) {
	p := quick
	p.CacheBytes = 10 << 10
	s, o := serve(t, p)
	for i := range 50 {
		path := fmt.Sprintf("/%d", i)
		s.Put(path, noise(5000+i))
		r := open(t, o, s.URL+path)
		if _, err := readAt(r, 3000, 10); err != nil {
			t.Fatal(err)
		}
	}
	if n := o.CachedBytes(); n > 10<<10 {
		t.Errorf("%d bytes are kept", n)
	}
}

// FuzzHub: a URI of the hub leads to the hub, and to a file of a dataset, or is refused.
func FuzzHub(f *testing.F) {
	for _, s := range []string{
		"datasets/o/n/a.tif", "datasets/o/n@main/a/b.tif", "datasets/o/n@refs/pr/1/a",
		"datasets/o/n@refs%2Fconvert%2Fparquet/x", "datasets/o/n@%zz/a",
		"datasets/o/../a/b", "datasets/o/n@a@b/c", "datasets/o/n?x=1/c", "datasets/o/n/#x",
		"x", "datasets/o/n@./a", "datasets/o/n@../a", "datasets/o/n@%2e%2e/a",
	} {
		f.Add(s)
	}
	hub := &url.URL{Scheme: "https", Host: "hub.example"}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := hubURL(hub, "hf://"+s)
		if err != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(again.EscapedPath(), "/")
		if again.Host != hub.Host || again.Scheme != "https" || again.RawQuery != "" || again.Fragment != "" ||
			len(parts) < 7 || parts[1] != "datasets" || parts[4] != "resolve" {
			t.Errorf("%q: %s", s, u)
		}
		for _, p := range parts[1:] {
			if p == "" || p == "." || p == ".." {
				t.Errorf("%q: %s", s, u)
			}
		}
	})
}

// TestRedirectsBelowRoots: a prefix holds for redirects too, for each reader, with and without what another opener has
// cached.
func TestRedirectsBelowRoots(t *testing.T) {
	b := noise(3000)
	mux := http.NewServeMux()
	file := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
	for _, path := range []string{"/data/a", "/data/sub/b", "/secret/c"} {
		mux.HandleFunc(path, file)
	}
	for from, to := range map[string]string{"/data/moved": "/data/sub/b", "/data/out": "/secret/c",
		"/data/twice": "/data/out", "/data/dots": "/data/%2e%2e/secret/c", "/data/folder/": "/secret/"} {
		mux.Handle(from, http.RedirectHandler(to, http.StatusFound))
	}
	s := httptest.NewServer(mux)
	defer s.Close()
	base, err := New(Options{Options: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	for _, root := range []string{"/", "/data", "/data/sub"} {
		o := openers.Below(base, []string{s.URL + root}).(source.KnownOpener)
		for path, below := range map[string][]string{"/data/a": {"/", "/data"}, "/data/moved": {"/", "/data"},
			"/data/out": {"/"}, "/data/twice": {"/"}, "/data/dots": {"/nowhere"}} {
			want := slices.Contains(below, root)
			for range 2 { // the second time out of a cache
				r, err := o.Open(context.Background(), s.URL+path)
				if (err == nil) != want {
					t.Errorf("below %s, %s: %v", root, path, err)
				}
				if err == nil {
					_, err = readAt(r, 2000, 1000)
				}
				if (err == nil) != want {
					t.Errorf("below %s, reading %s: %v", root, path, err)
				}
			}
			r, err := o.OpenKnown(context.Background(), s.URL+path, source.Known{Size: 3000})
			if err == nil {
				_, err = readAt(r, 2000, 1000)
			}
			if (err == nil) != want {
				t.Errorf("below %s, %s of known size: %v", root, path, err)
			}
		}
		if _, err := openers.Names(context.Background(), o, s.URL+"/data/folder"); err == nil ||
			!strings.Contains(err.Error(), "outside of the served directories") && root != "/" {
			t.Errorf("below %s, a listing: %v", root, err)
		}
	}
}
