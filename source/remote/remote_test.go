package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/big"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// contentRange is the grammar of RFC 9110, 14.4, for bytes.
var contentRange = regexp.MustCompile(`^bytes ([0-9]+)-([0-9]+)/([0-9]+|\*)$`)

// FuzzContentRange: the parser agrees with the grammar and with integers of any size.
func FuzzContentRange(f *testing.F) {
	for _, s := range []string{
		"bytes 0-0/1", "bytes 5-9/10", "bytes 5-9/*", "bytes 9-5/10", "bytes 0-9/5", "bytes */10",
		"bytes 0-1", "items 0-1/2", "bytes 0-9223372036854775807/9223372036854775808",
		"bytes 00-01/02", "bytes +0-1/2", "bytes 0-1/2 ", "",
	} {
		f.Add(s)
	}
	most := big.NewInt(1 << 62)
	f.Fuzz(func(t *testing.T, s string) {
		r, size, err := ContentRange(s)
		m := contentRange.FindStringSubmatch(s)
		valid := m != nil
		if valid {
			a, _ := new(big.Int).SetString(m[1], 10)
			b, _ := new(big.Int).SetString(m[2], 10)
			n := new(big.Int).Set(most)
			if m[3] != "*" {
				n.SetString(m[3], 10)
			}
			valid = a.Cmp(b) <= 0 && b.Cmp(n) < 0 && n.Cmp(most) <= 0
			if m[3] != "*" {
				valid = valid && n.Cmp(most) < 0
			}
			if valid && err == nil &&
				(a.Int64() != r.Off || b.Int64()-a.Int64()+1 != r.Len || m[3] != "*" && n.Int64() != size) {
				t.Errorf("%q: %v of %d", s, r, size)
			}
		}
		if valid != (err == nil) {
			t.Errorf("%q: %v", s, err)
		}
		if err == nil && (r.Off < 0 || r.Len < 1 || r.Off+r.Len < 0 || size >= 0 && r.Off+r.Len > size) {
			t.Errorf("%q: %v of %d", s, r, size)
		}
	})
}

func TestTags(t *testing.T) {
	day := time.Unix(1e9, 0)
	for _, c := range []struct {
		known, answer Tag
		same          bool
	}{
		{Tag{}, Tag{}, true},
		{Tag{}, Tag{ETag: `"a"`, Modified: day}, true},
		{Tag{ETag: `"a"`}, Tag{}, false},
		{Tag{ETag: `"a"`}, Tag{Modified: day}, false},
		{Tag{Modified: day}, Tag{}, false},
		{Tag{Modified: day}, Tag{ETag: `"a"`}, false},
		{Tag{Modified: day}, Tag{ETag: `"a"`, Modified: day}, true},
		{Tag{ETag: `"a"`}, Tag{ETag: `"a"`}, true},
		{Tag{ETag: `"a"`}, Tag{ETag: `W/"a"`}, true},
		{Tag{ETag: `"a"`}, Tag{ETag: `"b"`}, false},
		{Tag{ETag: `"a"`, Modified: day}, Tag{ETag: `"a"`, Modified: day.Add(1e9)}, true},
		{Tag{Modified: day}, Tag{Modified: day.Add(1e9)}, false},
		{Tag{ETag: `"a"`, Modified: day}, Tag{Modified: day}, false},
		{Tag{ETag: `"a"`, Modified: day}, Tag{Modified: day.Add(1e9)}, false},
	} {
		if c.known.Same(c.answer) != c.same {
			t.Errorf("known %+v, answer %+v", c.known, c.answer)
		}
	}
	if (Tag{ETag: `W/"a"`}).Strong() != "" || (Tag{ETag: `"a"`}).Strong() != `"a"` {
		t.Error("what is strong")
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Attempts: -1},
		{Concurrency: -1},
		{RetryBurst: -1},
		{RetryShare: -1},
		{Timeout: -1},
		{MinRate: -1},
		{Block: -1},
		{Block: 1 << 31},
		{CacheBytes: -1},
		{Gap: -1},
		{Backoff: -1},
		{MaxBackoff: -1},
		{Fresh: -1},
	} {
		if _, err := New(nil, o); err == nil {
			t.Errorf("%+v", o)
		}
	}
	o, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 70 {
		for range 10 {
			if d := o.backoff(n+1, 0); d < 0 || d > DefaultMaxBackoff || n == 0 && d > DefaultBackoff {
				t.Fatalf("waits %v after %d attempts", d, n+1)
			}
		}
	}
	if d := o.backoff(1, time.Second); d != time.Second {
		t.Errorf("waits %v where the server asks for a second", d)
	}
	if f := Classify(errors.New("x")); f.Class != Transient {
		t.Error(f)
	}
}

// wholeThenPart sends a whole object once, and then parts of it without a total size.
type wholeThenPart struct {
	b     []byte
	asked atomic.Int64
}

func (s *wholeThenPart) Host(string) string { return "host" }
func (s *wholeThenPart) Get(_ context.Context, _ string, r Range, _ Tag) (*Answer, error) {
	if s.asked.Add(1) == 1 {
		return Check(r, 200, "", int64(len(s.b)))
	}
	return &Answer{Body: io.NopCloser(bytes.NewReader(s.b)), Range: Range{r.Off, int64(len(s.b))}, Size: -1}, nil
}

// TestWholeObjectOfAnotherSize: the size that a catalog has for an object does not decide how much
// memory an answer with the whole object takes.
func TestWholeObjectOfAnotherSize(t *testing.T) {
	for _, size := range []int64{9, 11, 1 << 40, 1 << 62} {
		o, err := New(&wholeThenPart{b: []byte("0123456789")}, Options{Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		r, err := o.OpenKnown(t.Context(), "x://host/a", source.Known{Size: size})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.ReadAt(t.Context(), make([]byte, 4), 4); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// constant sends ranges of the same bytes, with a time of change.
type constant struct {
	changed time.Time
	asked   int
}

func (s *constant) Host(string) string { return "host" }
func (s *constant) Get(_ context.Context, _ string, r Range, _ Tag) (*Answer, error) {
	s.asked++
	b := bytes.Repeat([]byte("0"), 1000)
	r.Len = min(r.Len, int64(len(b))-r.Off)
	return &Answer{Body: io.NopCloser(bytes.NewReader(b[r.Off:][:r.Len])), Range: r, Size: int64(len(b)),
		Tag: Tag{Modified: s.changed}}, nil
}

// TestDiskKeepsSettledObjects: where only a time tells the versions of an object, those of the last minute are not
// kept, because the object may change once more in the same second.
func TestDiskKeepsSettledObjects(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a cache on disk needs locks of files")
	}
	for age, kept := range map[time.Duration]bool{0: false, 2 * settled: true} {
		var disk diskcache.Ref
		disk.Set(t.TempDir(), 1<<20)
		defer disk.Close()
		store := &constant{changed: time.Now().Add(-age).Truncate(time.Second)}
		for range 2 {
			o, err := New(store, Options{Block: 10, Disk: &disk})
			if err != nil {
				t.Fatal(err)
			}
			file, err := o.Open(t.Context(), "x://host/a")
			if err == nil {
				err = file.ReadAt(t.Context(), make([]byte, 500), 100)
			}
			if err = errors.Join(err, o.Close()); err != nil {
				t.Fatal(err)
			}
		}
		want := 4 // two heads, and two ranges
		if kept {
			want = 3
		}
		if store.asked != want {
			t.Errorf("changed %v ago: %d requests, want %d", age, store.asked, want)
		}
	}
}

// TestWrongFolderIsNoBadSample: the error of a folder that is no cache has no kind, so that it ends a run.
func TestWrongFolderIsNoBadSample(t *testing.T) {
	path := t.TempDir()
	testfile.Write(t, filepath.Join(path, "thesis.tex"), nil)
	var disk diskcache.Ref
	disk.Set(path, 1<<20)
	o, err := New(&constant{}, Options{Disk: &disk})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	file, err := o.OpenKnown(t.Context(), "x://host/a", source.Known{Size: 1000, ETag: "a"})
	if err != nil {
		t.Fatal(err)
	}
	err = file.ReadAt(t.Context(), make([]byte, 10), 0)
	if err == nil || fault.KindOf(err) != 0 || !strings.Contains(err.Error(), "is no cache") {
		t.Errorf("%v is of kind %v", err, fault.KindOf(err))
	}
}

// numbered sends ranges of an object whose bytes tell their offsets, with a tag.
type numbered struct {
	b     []byte
	most  int64 // bytes of an answer; 0: all
	asked []Range
}

func (s *numbered) Host(string) string { return "host" }
func (s *numbered) Get(_ context.Context, _ string, r Range, _ Tag) (*Answer, error) {
	r.Len = min(r.Len, int64(len(s.b))-r.Off)
	s.asked = append(s.asked, r)
	if s.most > 0 {
		r.Len = min(r.Len, s.most)
	}
	return &Answer{Body: io.NopCloser(bytes.NewReader(s.b[r.Off:][:r.Len])), Range: r, Size: int64(len(s.b)),
		Tag: Tag{ETag: "t"}}, nil
}

// TestReadsAskForWhatIsMissing: a reader of a known object asks for what no block of the opened object has, in one
// request, and for all of it if the object is another one.
func TestReadsAskForWhatIsMissing(t *testing.T) {
	store := &numbered{b: make([]byte, 100)}
	for i := range store.b {
		store.b[i] = byte(i)
	}
	o, err := New(store, Options{Block: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	open := func(known source.Known) source.Reader {
		r, err := o.OpenKnown(t.Context(), "x://host/a", known)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	head := open(source.Known{})                                          // 0 to 9
	if err := head.ReadAt(t.Context(), make([]byte, 1), 95); err != nil { // 90 to 99
		t.Fatal(err)
	}
	store.asked = nil
	for _, c := range []struct {
		known    source.Known
		off, n   int64
		requests []Range
	}{
		{source.Known{Size: 100, ETag: "t"}, 2, 5, nil},
		{source.Known{Size: 100, ETag: "t"}, 0, 10, nil},
		{source.Known{Size: 100, ETag: "t"}, 92, 8, nil},
		{source.Known{Size: 100, ETag: "t"}, 5, 15, []Range{{10, 10}}},
		{source.Known{Size: 100, ETag: "t"}, 80, 20, []Range{{80, 10}}},
		{source.Known{Size: 100, ETag: "t"}, 0, 100, []Range{{10, 80}}},
		{source.Known{Size: 100, ETag: "t"}, 20, 30, []Range{{20, 30}}},
		{source.Known{}, 3, 40, []Range{{10, 33}}},
		{source.Known{Size: 100}, 2, 5, []Range{{2, 5}}}, // nothing says that it is the same object
	} {
		p := make([]byte, c.n)
		err := open(c.known).ReadAt(t.Context(), p, c.off)
		if err != nil || !bytes.Equal(p, store.b[c.off:][:c.n]) || !slices.Equal(store.asked, c.requests) {
			t.Errorf("%d bytes at %d, %v: %v, asked for %v, %v", c.n, c.off, c.known, p, store.asked, err)
		}
		store.asked = nil
	}
	if err := open(source.Known{Size: 100, ETag: "u"}).ReadAt(t.Context(), make([]byte, 5), 0); err == nil {
		t.Error("another object was read from the blocks of this one")
	}
}

// TestOpensSmallObjectsWhole: an object that is small enough costs no request after the one that opens it; of a larger
// one the opener keeps a block, and as much of one whose server sends less than is asked.
func TestOpensSmallObjectsWhole(t *testing.T) {
	for _, c := range []struct {
		whole, most int64
		want        []Range
	}{
		{0, 0, []Range{{0, 10}, {90, 10}}},
		{99, 0, []Range{{0, 99}, {90, 10}}},
		{100, 0, []Range{{0, 100}}},
		{100, 60, []Range{{0, 100}, {90, 10}}},
	} {
		store := &numbered{b: make([]byte, 100), most: c.most}
		o, err := New(store, Options{Block: 10})
		if err != nil {
			t.Fatal(err)
		}
		r, err := o.Open(source.WithWhole(t.Context(), c.whole), "x://host/a")
		if err == nil {
			err = errors.Join(r.ReadAt(t.Context(), make([]byte, 5), 95), r.ReadAt(t.Context(), make([]byte, 8), 2))
		}
		if err = errors.Join(err, o.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(store.asked, c.want) {
			t.Errorf("%d bytes whole, answers of %d: asked for %v, want %v", c.whole, c.most, store.asked, c.want)
		}
	}
}
