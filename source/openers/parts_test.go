package openers_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	_ "github.com/chaski-eo/chaski/source/archive"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// zipped returns a ZIP with files that are stored.
func zipped(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Store, Extra: []byte{1, 2, 0, 0}}
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// objects is an opener of objects in memory, which have tags.
type objects struct {
	bytes map[string][]byte
	reads []string // names and ranges
	opens int      // without a known size
	down  error    // of all reads
}

func (o *objects) Open(ctx context.Context, uri string) (source.Reader, error) {
	o.opens++
	return o.OpenKnown(ctx, uri, source.Known{})
}

func (o *objects) OpenKnown(_ context.Context, uri string, k source.Known) (source.Reader, error) {
	b, ok := o.bytes[uri]
	if !ok {
		return nil, fault.New(fault.NotFound, "object", "no such object")
	}
	if k.ETag != "" && k.ETag != tagOf(b) {
		return nil, fault.New(fault.Corrupt, "object", "the object is another one now")
	}
	return &object{o, uri, b}, nil
}

func tagOf(b []byte) string { return fmt.Sprintf(`"%x"`, crc32.ChecksumIEEE(b)) }

type object struct {
	all *objects
	uri string
	b   []byte
}

func (o *object) Size() int64  { return int64(len(o.b)) }
func (o *object) Close() error { return nil }
func (o *object) ETag() string { return tagOf(o.b) }
func (o *object) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > o.Size() || int64(len(p)) > o.Size()-off {
		return fault.At(fault.Corrupt, "byte range", off, "past the end")
	}
	if o.all.down != nil {
		return o.all.down
	}
	o.all.reads = append(o.all.reads, fmt.Sprintf("%s %d+%d", o.uri, off, len(p)))
	copy(p, o.b[off:])
	return nil
}

// TestParts: ranges of files and members of ZIPs are read as files, also of remote files and of one another.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	inner := zipped(t, map[string]string{"c.txt": "inmost"})
	outer := zipped(t, map[string]string{"d/a.txt": "hello", "./b.txt": "bee", `w\x.txt`: "ex", "in.zip": string(inner),
		"d/": ""})
	single := zipped(t, map[string]string{"only.txt": "alone"})
	arrays := zipped(t, map[string]string{"b.npy": "array", "d/e.npy": "deep"})
	for name, b := range map[string][]byte{"o.zip": outer, "s.zip": single, "plain.bin": []byte("0123456789"),
		"a.npz": arrays, "n.zip": zipped(t, map[string]string{"a.npz": string(arrays)})} {
		testfile.Write(t, filepath.Join(dir, name), b)
	}
	web := &objects{bytes: map[string][]byte{"https://h/o.zip": outer, "https://h/a.npz?x=1": arrays,
		"s3://b/plain.bin": []byte("abcdef")}}
	var files openers.Files
	defer files.Close()
	mux := &openers.Mux{Files: &files, Schemes: map[string]source.Opener{"https": web, "s3": web}}
	for name, want := range map[string]string{
		"/vsizip/DIR/o.zip/d/a.txt":                               "hello",
		"/vsizip/{DIR/o.zip}/b.txt":                               "bee",
		"/vsizip/DIR/o.zip/w/x.txt":                               "ex",
		"/vsizip/DIR/s.zip":                                       "alone",
		"/vsizip/{/vsizip/DIR/o.zip/in.zip}/c.txt":                "inmost",
		"DIR/a.npz::b":                                            "array",
		"DIR/a.npz::d/e.npy":                                      "deep",
		"/vsizip/DIR/a.npz/b.npy":                                 "array",
		"/vsizip/{DIR/n.zip}/a.npz::b":                            "array",
		"https://h/a.npz?x=1::b":                                  "array",
		"/vsisubfile/2_3,DIR/plain.bin":                           "234",
		"/vsisubfile/8,DIR/plain.bin":                             "89",
		"/vsisubfile/8_0,DIR/plain.bin":                           "89",
		"/vsisubfile/10_0,DIR/plain.bin":                          "",
		"/vsisubfile/1_2,/vsizip/DIR/o.zip/d/a.txt":               "el",
		"/vsisubfile/1_2,/vsisubfile/2_5,DIR/plain.bin":           "34",
		"/vsisubfile/1_2,/vsis3/b/plain.bin":                      "bc",
		"/vsizip//vsicurl/https://h/o.zip/d/a.txt":                "hello",
		"/vsizip/{/vsizip//vsicurl/https://h/o.zip/in.zip}/c.txt": "inmost",
	} {
		name = strings.ReplaceAll(name, "DIR", dir)
		got, err := contents(mux, name)
		if err != nil || got != want {
			t.Errorf("%s: %q: %v", name, got, err)
		}
		if strings.Contains(name, dir) {
			got, err = contents(&files, name)
			if err != nil || got != want {
				t.Errorf("%s of Files: %q: %v", name, got, err)
			}
		}
	}
	for name, want := range map[string]fault.Kind{
		"/vsizip/DIR/o.zip/none.txt":      fault.NotFound,
		"DIR/a.npz::none":                 fault.NotFound,
		"DIR/plain.npz::none":             fault.NotFound,
		"DIR/a.npz::b.npz::b":             fault.NotFound,
		"/vsizip/DIR/none.zip/a.txt":      fault.NotFound,
		"/vsizip/DIR/o.zip":               fault.Unsupported,
		"/vsizip/DIR/o.zip/d":             fault.NotFound,
		"/vsizip/{DIR/plain.bin}/a":       fault.Corrupt,
		"/vsisubfile/8_3,DIR/plain.bin":   fault.Corrupt,
		"/vsisubfile/11,DIR/plain.bin":    fault.Corrupt,
		"/vsisubfile/1_2,ftp://h/a":       fault.Unsupported,
		"/vsizip/{https://h/none.zip}/a":  fault.NotFound,
		"/vsisubfile/1_2,DIR":             fault.Unsupported,
		"/vsizip/DIR/o.zip/../plain.bin":  fault.NotFound,
		"/vsisubfile/0_1,DIR/missing.bin": fault.NotFound,
	} {
		if _, err := contents(mux, strings.ReplaceAll(name, "DIR", dir)); fault.KindOf(err) != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	_, err := mux.Open(t.Context(), "/vsi7z/x")
	if err == nil || !strings.Contains(err.Error(), "does not read /vsi7z/") {
		t.Errorf("a file system that is not read: %v", err)
	}
	modified := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(dir+"/plain.bin", modified, modified); err != nil {
		t.Fatal(err)
	}
	for name, timed := range map[string]bool{dir + "/plain.bin": true, "/vsis3/b/plain.bin": false} {
		r, err := mux.Open(t.Context(), "/vsisubfile/1_2,"+name)
		if err != nil {
			t.Fatal(err)
		}
		if part, ok := r.(source.Timed); ok != timed || ok && !part.ModTime().Equal(modified) {
			t.Errorf("%s: has a time: %v", name, ok)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = contents(mux, "/vsizip/"+dir+"/o.zip")
	if err == nil || !strings.Contains(err.Error(), ": archive: it has 4") {
		t.Errorf("a ZIP of several members: %v", err)
	}
	var names []string
	err = mux.List(t.Context(), "/vsizip/"+dir+"/o.zip/d", func(e source.Entry) error {
		names = append(names, fmt.Sprint(e.Path, e.Size))
		return nil
	})
	if err != nil || !slices.Equal(names, []string{"a.txt5"}) {
		t.Errorf("%v: %v", names, err)
	}
	errEnough, listed := errors.New("enough"), 0
	if err := mux.List(t.Context(), "/vsizip/"+dir+"/o.zip", func(source.Entry) error {
		listed++
		return errEnough
	}); !errors.Is(err, errEnough) || listed != 1 {
		t.Errorf("%d members were listed: %v", listed, err)
	}
	for name, o := range map[string]source.Opener{"/vsisubfile/1_2," + dir + "/plain.bin": mux, dir: &files,
		"/vsizip/" + dir + "/o.zip": web} {
		err := openers.List(t.Context(), o, name, nil)
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "has no listing") {
			t.Errorf("a list of %s: %v", name, err)
		}
	}
	names, err = mux.Names(t.Context(), "/vsizip//vsicurl/https://h/o.zip")
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"b.txt", "d/", "in.zip", "w/"}) {
		t.Errorf("%v: %v", names, err)
	}
}

// closing is an opener that counts how often it is closed, and knows the names in its folders.
type closing struct {
	objects
	closed int
}

func (c *closing) Close() error {
	c.closed++
	return fmt.Errorf("closed %d", c.closed)
}

func (c *closing) Names(context.Context, string) ([]string, error) { return []string{"a", "b/"}, nil }

// TestCloseAll: a Mux closes each opener that can be closed, once, and asks one for names that knows them.
func TestCloseAll(t *testing.T) {
	files, web := &closing{}, &closing{}
	mux := &openers.Mux{Files: files, Schemes: map[string]source.Opener{"s3": web, "http": web, "gs": &objects{}}}
	names, err := openers.Names(t.Context(), mux, "s3://b")
	if err != nil || !slices.Equal(names, []string{"a", "b/"}) {
		t.Errorf("%q, %v", names, err)
	}
	err = mux.Close()
	if files.closed != 1 || web.closed != 1 || err == nil || err.Error() != "closed 1\nclosed 1" {
		t.Errorf("closed %d and %d times: %v", files.closed, web.closed, err)
	}
}

// TestPartsBelowRoots: the roots hold for the file whose part is read.
func TestPartsBelowRoots(t *testing.T) {
	dir := rootsTree(t)
	b := zipped(t, map[string]string{"x": "member", "../out/secret": "climbs"})
	for _, name := range []string{"a/in.zip", "out/out.zip"} {
		testfile.Write(t, filepath.Join(dir, name), b)
	}
	if err := os.Symlink("../out/out.zip", filepath.Join(dir, "a/leak.zip")); err != nil {
		t.Fatal(err)
	}
	web := &objects{bytes: map[string][]byte{"s3://in/a.zip": b, "s3://out/a.zip": b}}
	var files openers.Files
	defer files.Close()
	mux := &openers.Mux{Files: &files, Schemes: map[string]source.Opener{"s3": web}}
	o := openers.Below(mux, []string{dir + "/a", "/vsis3/in"})
	for name, want := range map[string]string{
		"/vsizip/DIR/a/in.zip/x":                 "member",
		"/vsizip/DIR/a/in.zip/../out/secret":     "climbs", // the name of a member is no path
		"/vsisubfile/0_1,DIR/a/sub/in":           "s",
		"/vsizip//vsis3/in/a.zip/x":              "member",
		"/vsis3/in/a.zip":                        string(b),
		"/vsizip/DIR/out/out.zip/x":              "",
		"/vsizip/DIR/a/leak.zip/x":               "",
		"/vsisubfile/0_1,DIR/out/secret":         "",
		"/vsisubfile/0_1,DIR/a/../out/secret":    "",
		"/vsizip//vsis3/out/a.zip/x":             "",
		"/vsizip/{/vsizip/DIR/out/out.zip}/x":    "",
		"/vsisubfile/0_1,/vsis3/in/../out/a.zip": "",
		"/vsicurl/http://127.0.0.1/a.tif":        "",
		"/vsis3/in/a%20b":                        "",
	} {
		name = strings.ReplaceAll(name, "DIR", dir)
		got, err := contents(o, name)
		if want != "" && (err != nil || got != want) || want == "" && !openers.Outside(err) {
			t.Errorf("%s: %q: %v", name, got, err)
		}
		allowed, err := openers.RootsOf(o).Allow(name)
		if want == "" && !openers.Outside(err) || want != "" && err != nil {
			t.Errorf("%s: allowed %q: %v", name, allowed, err)
		}
		if got, err = contents(o, allowed); want != "" && got != want {
			t.Errorf("%s: %q: %v", allowed, got, err)
		}
	}
	for _, name := range []string{"/vsizip/" + dir + "/out/out.zip", "/vsizip//vsis3/out/a.zip", "/vsis3/out"} {
		if err := openers.List(t.Context(), o, name, nil); !openers.Outside(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRequestsOfMembers: the directory of a ZIP is read once. A member whose tag is known costs its own bytes.
func TestRequestsOfMembers(t *testing.T) {
	files := map[string]string{}
	for i := range 5000 { // a directory longer than the end of the file that is read first
		files[fmt.Sprintf("chips/%06d.tif", i)] = strings.Repeat("x", 100)
	}
	web := &objects{bytes: map[string][]byte{"s3://b/a.zip": zipped(t, files)}}
	mux := &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"s3": web}}
	const name = "/vsizip//vsis3/b/a.zip/chips/000007.tif"
	if _, err := contents(mux, name); err != nil || len(web.reads) != 4 { // the end, the directory, header, content
		t.Fatalf("%v: %v", web.reads, err)
	}
	web.reads = nil
	r, err := mux.Open(t.Context(), name)
	if err != nil || len(web.reads) != 0 {
		t.Fatalf("%v: %v", web.reads, err)
	}
	known := source.Known{Size: r.Size(), ETag: source.ETag(r)}
	web.opens = 0
	r, err = source.OpenKnown(t.Context(), mux, name, known)
	if err != nil || r.Size() != 100 || web.opens != 0 {
		t.Fatalf("%d opened: %v", web.opens, err)
	}
	if err = r.ReadAt(t.Context(), make([]byte, 10), 90); err != nil || len(web.reads) != 1 {
		t.Errorf("%v: %v", web.reads, err)
	}
	if _, err = source.OpenKnown(t.Context(), mux, name, source.Known{Size: 99}); fault.KindOf(err) != fault.Corrupt {
		t.Error(err)
	}
	web.bytes["s3://b/a.zip"] = zipped(t, map[string]string{"chips/000007.tif": "new"})
	if got, err := contents(mux, name); err != nil || got != "new" {
		t.Errorf("%q: %v", got, err)
	}
	if _, err = source.OpenKnown(t.Context(), mux, name, known); fault.KindOf(err) != fault.Corrupt {
		t.Error(err)
	}
}

// inStore returns an opener of the object s3://b/a.zip.
func inStore(b []byte) *openers.Mux {
	store := &objects{bytes: map[string][]byte{"s3://b/a.zip": b}}
	return &openers.Mux{Schemes: map[string]source.Opener{"s3": store}}
}

// TestMembersThatAreNotStored: they are refused with the reason.
func TestMembersThatAreNotStored(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	huge := zip.FileHeader{Method: zip.Deflate, CompressedSize64: 2, UncompressedSize64: 1 << 30}
	lying := zip.FileHeader{Method: zip.Deflate, CompressedSize64: 2, UncompressedSize64: 1 << 20}
	for name, h := range map[string]zip.FileHeader{"huge": huge, "lying": lying, "other": {Method: 93},
		"secret": {Flags: 1}} {
		h.Name = name
		if _, err := w.CreateRaw(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mux := inStore(b.Bytes())
	kinds := map[string]fault.Kind{"huge": fault.Limit, "lying": fault.Corrupt}
	for name, want := range map[string]string{"huge": "Deflate", "lying": "2 bytes cannot inflate to 1048576",
		"other": "method 93", "secret": "encrypted"} {
		_, err := mux.Open(t.Context(), "/vsizip//vsis3/b/a.zip/"+name)
		if fault.KindOf(err) != cmp.Or(kinds[name], fault.Unsupported) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "/vsizip//vsis3/b/a.zip/"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLyingSize: a member that is stored has the bytes that are stored, whatever the ZIP says of its content.
func TestLyingSize(t *testing.T) {
	b := zipped(t, map[string]string{"a": "hello"})
	copy(b[bytes.Index(b, []byte("PK\x01\x02"))+24:], "\x09\x00\x00\x00")
	if got, err := contents(inStore(b), "/vsizip//vsis3/b/a.zip/a"); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// deflated returns a ZIP of one member that is compressed.
func deflated(t testing.TB, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err == nil {
		_, err = f.Write([]byte(content))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestDeflatedMembers: any range of a compressed member has the bytes that were written, and damage is a fault.
func TestDeflatedMembers(t *testing.T) {
	text := []byte(strings.Repeat("the same words, ", 13000)) // longer than the head that is inflated alone
	for i := range text {
		text[i] += byte(i >> 9)
	}
	b := deflated(t, "a/b", string(text))
	r, err := inStore(b).Open(t.Context(), "/vsizip//vsis3/b/a.zip/a/b")
	if err != nil || r.Size() != int64(len(text)) || len(b) > len(text)/2 {
		t.Fatalf("%d bytes in a ZIP of %d: %v", len(text), len(b), err)
	}
	for _, at := range [][2]int{{0, 1}, {777, 7000}, {0, 64 << 10}, {1, 64<<10 + 1}, {0, len(text)}, {777, 7000},
		{len(text) - 1, len(text)}, {5, 5}, {len(text), len(text)}} {
		got := make([]byte, at[1]-at[0])
		if err := r.ReadAt(t.Context(), got, int64(at[0])); err != nil || !bytes.Equal(got, text[at[0]:at[1]]) {
			t.Errorf("bytes %v differ: %v", at, err)
		}
	}
	for _, off := range []int{-1, len(text) - 1, len(text) + 1} {
		if err := r.ReadAt(t.Context(), make([]byte, 2), int64(off)); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("past the end: %v", err)
		}
	}
	bad := bytes.Clone(b)
	bad[bytes.Index(bad, []byte("a/b"))+200] ^= 0x55
	if _, err := contents(inStore(bad), "/vsizip//vsis3/b/a.zip/a/b"); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("damaged: %v", err)
	}
	// Where the content is another one than its sum says, all ranges but of the head are refused.
	bad = bytes.Clone(b)
	bad[bytes.Index(bad, []byte("PK\x01\x02"))+16] ^= 0x55
	if r, err = inStore(bad).Open(t.Context(), "/vsizip//vsis3/b/a.zip/a/b"); err != nil {
		t.Fatal(err)
	}
	if err := r.ReadAt(t.Context(), make([]byte, 9), 100_000); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a sum that differs: %v", err)
	}
	copy(bad[bytes.Index(bad, []byte("PK\x01\x02"))+16:], "\x00\x00\x00\x00") // no sum
	if got, err := contents(inStore(bad), "/vsizip//vsis3/b/a.zip/a/b"); err != nil || got != string(text) {
		t.Errorf("without a sum: %v", err)
	}
	store := &objects{bytes: map[string][]byte{"s3://b/a.zip": b}}
	mux := &openers.Mux{Schemes: map[string]source.Opener{"s3": store}}
	if r, err = mux.Open(t.Context(), "/vsizip//vsis3/b/a.zip/a/b"); err != nil || store.opens != 1 {
		t.Fatalf("%d opened: %v", store.opens, err)
	}
	store.down = errors.New("the network is down")
	if err := r.ReadAt(t.Context(), make([]byte, 9), 0); !errors.Is(err, store.down) {
		t.Errorf("%v, want %v", err, store.down)
	}
	store.down = nil
	for _, down := range []error{nil, errors.New("the network is down")} { // what was inflated is kept
		store.down = down
		if err := r.ReadAt(t.Context(), make([]byte, 1), 100_000); err != nil {
			t.Error(err)
		}
	}
}

// TestMembersOfOneName: the first one counts as in GDAL, but of Zarr stores the last one, as in zarr-python.
func TestMembersOfOneName(t *testing.T) {
	for _, zarr := range []bool{false, true} {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		names, want := []string{"x/0", "x/0", "y"}, "0"
		if zarr {
			names, want = append(names, "x/0", ".zgroup"), "3"
		}
		for i, name := range names {
			f, err := w.CreateHeader(&zip.FileHeader{Name: name})
			if err == nil {
				_, err = fmt.Fprint(f, i)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := contents(inStore(b.Bytes()), "/vsizip//vsis3/b/a.zip/x/0"); err != nil || got != want {
			t.Errorf("zarr %v: %q, want %q: %v", zarr, got, want, err)
		}
	}
}

// FuzzArchive reads ZIPs of any bytes.
func FuzzArchive(f *testing.F) {
	b := zipped(f, map[string]string{"a": "hello", "b": ""})
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add(append([]byte("before"), b...))
	f.Add(deflated(f, "a", "hello hello hello hello"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := contents(inStore(b), "/vsizip//vsis3/b/a.zip/a")
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("%q: an error without a kind: %v", got, err)
		}
	})
}
