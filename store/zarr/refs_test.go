package zarr

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// refArray is the metadata of an array of 4 × 4 bytes in chunks of 2 × 2, as a string of JSON.
const refArray = `"{\"zarr_format\":2,\"shape\":[4,4],\"chunks\":[2,2],\"dtype\":\"|u1\",\"fill_value\":9,` +
	`\"order\":\"C\",\"filters\":null,\"compressor\":null}"`

// refs writes a file of references with an array "a" whose first chunk is as given, and returns its path.
func refs(t *testing.T, dir, chunk string) string {
	t.Helper()
	put(t, dir, "refs.json", `{"version":1,"templates":{"u":"data.nc","loop":"{{loop}}"},"refs":{".zgroup":`+
		`"{\"zarr_format\":2}","a/.zarray":`+refArray+`,"a/0.0":`+chunk+`,"a/1.1":"base64:AQIDBA=="}}`)
	return filepath.Join(dir, "refs.json")
}

// read returns the cells of the array "a" of a store, or an error.
func read(ctx context.Context, o source.Opener, uri string) ([]byte, error) {
	n, err := Open(ctx, o, uri, Options{})
	if err != nil {
		return nil, err
	}
	at, err := n.At(ctx, "a")
	if err != nil {
		return nil, err
	}
	if list, err := n.Members(ctx); err != nil || len(list) != 1 || list[0].Path != "a" || list[0].Err != nil {
		return nil, fmt.Errorf("members %+v: %w", list, err)
	}
	dst := make([]byte, 16)
	return dst, at.Array.NewReader().ReadInto(ctx, dst, []int64{0, 0}, []int64{4, 4}, []int64{4, 1})
}

// is reports whether there is an array or a group at a URI.
func is(t *testing.T, o source.Opener, uri string) bool {
	t.Helper()
	p, err := source.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return Is(t.Context(), o, p)
}

// TestReferences: the content of chunks is that which a file of references has, or that of the range which it names;
// a chunk that it does not name has the fill value.
func TestReferences(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "data.nc", "CDF\x01\x05\x06\x07\x08")
	put(t, dir, "four.nc", "\x05\x06\x07\x08")
	var files source.Files
	defer files.Close()
	want := []byte{5, 6, 9, 9, 7, 8, 9, 9, 9, 9, 1, 2, 9, 9, 3, 4}
	for _, chunk := range []string{
		`["data.nc",4,4]`, `["{{u}}",4,4]`, `["{{ u }}",4,4]`, `["four.nc"]`, `"\u0005\u0006\u0007\u0008"`,
		`"base64:BQYHCA=="`, fmt.Sprintf("[%q,4,4]", filepath.Join(dir, "data.nc")),
		fmt.Sprintf("[%q,4,4]", "file://"+filepath.Join(dir, "data.nc")),
	} {
		file := refs(t, dir, chunk)
		for _, o := range []source.Opener{&files, source.Below(&files, []string{dir})} {
			if chunk == `["four.nc"]` && source.RootsOf(o).Bounded() {
				continue // see TestReferencesBelowRoots
			}
			if got, err := read(t.Context(), o, file); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %v, %v", chunk, got, err)
			}
		}
		if !is(t, &files, file) || !is(t, &files, file+"/a") {
			t.Error("not taken for Zarr")
		}
	}
	at, err := Open(t.Context(), &files, filepath.Join(dir, "refs.json", "a"), Options{})
	if err != nil || at.Array == nil {
		t.Errorf("an array by its own path: %v", err)
	}
	old := `{".zgroup":"{\"zarr_format\":2}","a/.zarray":` + refArray + `,"a/0.0":["data.nc",4,4],` +
		`"a/1.1":"\u0001\u0002\u0003\u0004"}`
	put(t, dir, "old.json", old)
	if got, err := read(t.Context(), &files, filepath.Join(dir, "old.json")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("version 0: %v, %v", got, err)
	}
}

// TestHostileReferences: what a file of references may not say is refused with a kind.
func TestHostileReferences(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "data.nc", "CDF\x01\x05\x06\x07\x08")
	var files source.Files
	defer files.Close()
	for _, c := range []struct {
		chunk string
		kind  fault.Kind
	}{
		{`["data.nc",4,5]`, fault.Corrupt}, // past the end
		{`["data.nc",9223372036854775807,4]`, fault.Corrupt},
		{`["data.nc",-1,4]`, fault.Corrupt},
		{`["data.nc",4,-4]`, fault.Corrupt},
		{`["data.nc",4,1e30]`, fault.Corrupt},
		{`["data.nc",4]`, fault.Corrupt},
		{`["",4,4]`, fault.Corrupt},
		{`[null,4,4]`, fault.Corrupt},
		{`["gone.nc",4,4]`, fault.Corrupt}, // not a chunk with the fill value
		{`["data.nc",4,3]`, fault.Corrupt}, // a chunk of three bytes
		{`5`, fault.Corrupt},
		{`"base64:%%"`, fault.Corrupt},
		{`["{{v}}",4,4]`, fault.Unsupported},
		{`["{{loop}}",4,4]`, fault.Unsupported},
		{`["{{u",4,4]`, fault.Unsupported},
		{`["simplecache::file://data.nc",4,4]`, fault.Unsupported},
		{`["data.nc\n",4,4]`, fault.Unsupported},
		{`["gopher://host/data.nc",4,4]`, fault.Unsupported},
		{`"","a/0.0":""`, fault.Corrupt}, // twice
		{`"","../a":""`, fault.Corrupt},
		{`""},"gen":[{}],"x":{`, fault.Unsupported},
		{`""},"x":{`, fault.Corrupt},
	} {
		if _, err := read(t.Context(), &source.Mux{Files: &files}, refs(t, dir, c.chunk)); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %v", c.chunk, err, c.kind)
		}
	}
	put(t, dir, "refs.json", `{"version":2,"refs":{}}`)
	if _, err := read(t.Context(), &files, filepath.Join(dir, "refs.json")); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("version 2: %v", err)
	}
}

// remote has the files of a directory below s3://bucket/.
type remote struct {
	files source.Files
	dir   string
}

func (r *remote) Open(ctx context.Context, uri string) (source.Reader, error) {
	return r.files.Open(ctx, filepath.Join(r.dir, strings.TrimPrefix(uri, "s3://bucket/")))
}

// TestRemoteReferences: a remote file of references leads to remote files, and to no local ones.
func TestRemoteReferences(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "sub/data.nc", "CDF\x01\x05\x06\x07\x08")
	o := &source.Mux{Files: &remote{dir: dir}, Schemes: map[string]source.Opener{"s3": &remote{dir: dir}}}
	for chunk, kind := range map[string]fault.Kind{
		`["data.nc",4,4]`:                  0,
		`["s3://bucket/sub/data.nc",4,4]`:  0,
		`["../sub/data.nc",4,4]`:           fault.Unsupported,
		`["/etc/passwd",0,4]`:              fault.Unsupported,
		`["file:///etc/passwd",0,4]`:       fault.Unsupported,
		`["..\\data.nc",4,4]`:              fault.Unsupported,
		`["http://127.0.0.1/data.nc",4,4]`: fault.Unsupported, // no opener for it

		`["/vsis3/bucket/sub/data.nc",4,4]`:                 0,
		`["/vsisubfile/1_7,/vsis3/bucket/sub/data.nc",3,4]`: 0,
		`["/vsisubfile/1_7,data.nc",3,4]`:                   0,
		`["/vsisubfile/1_7,/etc/passwd",3,4]`:               fault.Unsupported,
		`["/vsisubfile/1_7,../sub/data.nc",3,4]`:            fault.Unsupported,
		`["/vsizip//etc/a.zip/data.nc",4,4]`:                fault.Unsupported,
		`["/vsitar/a.tar/data.nc",4,4]`:                     fault.Unsupported,
		`["/vsicurl/http://127.0.0.1/data.nc",4,4]`:         fault.Unsupported,
		`["/vsisubfile/1_7,/vsisubfile/0,/etc/passwd",3,4]`: fault.Unsupported,
		`["/vsisubfile/0,/vsisubfile/1_7,data.nc",3,4]`:     0,
	} {
		refs(t, filepath.Join(dir, "sub"), chunk)
		if _, err := read(t.Context(), o, "s3://bucket/sub/refs.json"); fault.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", chunk, err, kind)
		}
	}
}

// TestReferencesBelowRoots: below roots, references lead to files below them only, and there only to those that begin
// as files of arrays do.
func TestReferencesBelowRoots(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	put(t, dir, "data.nc", "CDF\x01\x05\x06\x07\x08")
	put(t, dir, "key.pem", "-----BEGIN KEY")
	put(t, top, "outside.nc", "CDF\x01\x05\x06\x07\x08")
	if err := os.Symlink(filepath.Join(top, "outside.nc"), filepath.Join(dir, "link.nc")); err != nil {
		t.Fatal(err)
	}
	var files source.Files
	defer files.Close()
	o := source.Below(&source.Mux{Files: &files}, []string{dir})
	for chunk, kind := range map[string]fault.Kind{
		`["data.nc",4,4]`:       0,
		`["../outside.nc",4,4]`: fault.NotFound,
		`["link.nc",4,4]`:       fault.NotFound,
		`["key.pem",4,4]`:       fault.Unsupported,
		`["s3://b/x.nc",4,4]`:   fault.NotFound,

		`["/vsisubfile/0_8,data.nc",4,4]`:       0,
		`["/vsisubfile/0_8,../outside.nc",4,4]`: fault.NotFound,
		`["/vsisubfile/0_8,key.pem",4,4]`:       fault.Unsupported,
		`["/vsis3/b/x.nc",4,4]`:                 fault.NotFound,
	} {
		if _, err := read(t.Context(), o, refs(t, dir, chunk)); fault.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", chunk, err, kind)
		}
	}
}

// TestManyReferences: groups of references are listed in a time that does not grow with the chunks below them, and
// memory is charged for what is kept.
func TestManyReferences(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"version":1,"refs":{".zgroup":"{\"zarr_format\":2}"`)
	for g := range 300 {
		fmt.Fprintf(&b, `,"g%d/.zarray":%s`, g, refArray)
		for c := range 300 {
			fmt.Fprintf(&b, `,"g%d/%d":["data.nc",0,4]`, g, c)
		}
	}
	b.WriteString("}}")
	put(t, dir, "refs.json", b.String())
	var files source.Files
	defer files.Close()
	n, err := Open(t.Context(), &files, filepath.Join(dir, "refs.json"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if least := int64(300 * 301 * refBytes); n.charged < least {
		t.Errorf("%d bytes are charged, at least %d are kept", n.charged, least)
	}
	list, err := n.Members(t.Context())
	if err != nil || len(list) != 300 {
		t.Fatalf("%d arrays, %v", len(list), err)
	}
	names, err := n.open.(*references).list.names(t.Context(), "")
	if err != nil || len(names) != 301 || names[1] != "g0/" {
		t.Errorf("%d names for 301 entries, %v", len(names), err)
	}
	if names, err = n.open.(*references).list.names(t.Context(), "g7"); err != nil || len(names) != 301 {
		t.Errorf("%d names for 301 entries of a group, %v", len(names), err)
	}
}

// TestMemoryOfReferences: what templates make of short URLs is charged, and so are the templates; what is not kept does
// not take memory.
func TestMemoryOfReferences(t *testing.T) {
	race.SkipCovered(t)
	long, chunks := strings.Repeat("d/", 2000), make([]string, 1000)
	for i := range chunks {
		chunks[i] = fmt.Sprintf(`"a/%d":["{{u}}%d",0,1]`, i, i)
	}
	parse := func(text string) (kept int64, err error) {
		_, err = parseReferences(t.Context(), []byte(text), func(refs int, bytes int64) error {
			kept += bytes + int64(refs)*refBytes
			return nil
		})
		return kept, err
	}
	kept, err := parse(fmt.Sprintf(`{"version":1,"templates":{"u":%q},"refs":{%s}}`, long, strings.Join(chunks, ",")))
	if err != nil || kept < 2*1000*4000 { // the URL, and what it is resolved to
		t.Errorf("%d bytes are charged for 1000 URLs of 4000 bytes, %v", kept, err)
	}
	many := strings.Repeat(",0", 1<<20)
	for text, least := range map[string]int64{
		`{"version":1,"templates":{"u":"","v":""},"refs":{}}`: 2 * refBytes,
		`{"version":1,"refs":{"a":[0` + many + `]}}`:          0,
		`{"version":1,"gen":[0` + many + `]}`:                 0,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		kept, err := parse(text)
		runtime.ReadMemStats(&after)
		if kept < least || least == 0 && err == nil {
			t.Errorf("%.60s: %d bytes are charged, %v", text, kept, err)
		}
		// Buffers of the decoder: 2 + 4 + 8 MiB, less a bit; and the text.
		if n := after.TotalAlloc - before.TotalAlloc; n > 20<<20 {
			t.Errorf("%.60s: %d bytes are allocated for a text of %d", text, n, len(text))
		}
	}
}

// FuzzReferences: a file of references of any content is parsed or refused, and every object that it names can be
// opened or is refused.
func FuzzReferences(f *testing.F) {
	for _, s := range []string{
		`{"version":1,"templates":{"u":"data.nc"},"gen":[],"refs":{".zgroup":"{\"zarr_format\":2}","a/.zarray":` +
			refArray + `,"a/0.0":["{{u}}",0,4],"a/0.1":["data.nc"],"a/1.0":"base64:AQIDBA==","a/.zattrs":{"x":NaN}}}`,
		`{".zgroup":"{\"zarr_format\":2}","a/.zarray":` + refArray + `,"a/0.0":["s3://b/data.nc",1,4],"b/0":""}`,
		`{"version":0,"refs":{"zarr.json":"","a":["/x",9223372036854775807,1]}}`,
	} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data.nc"), []byte("CDF\x01\x05\x06\x07\x08"), 0o600); err != nil {
		f.Fatal(err)
	}
	var files source.Files
	f.Cleanup(func() { _ = files.Close() })
	o := source.Below(&source.Mux{Files: &files}, []string{dir})
	f.Fuzz(func(t *testing.T, b []byte) {
		kept := int64(0)
		list, err := parseReferences(t.Context(), b, func(refs int, bytes int64) error {
			kept += bytes + int64(refs)*refBytes
			return nil
		})
		kinded(t, err)
		if err != nil {
			return
		}
		if len(list.refs) > len(b) || kept > int64(len(b))*(2*refBytes+4) {
			t.Fatalf("%d references, %d bytes kept of %d", len(list.refs), kept, len(b))
		}
		file := filepath.Join(dir, "refs.json")
		s := &references{base: o, uri: file, list: list}
		for _, f := range list.files {
			f.uri, f.err = resolve(file, f.uri)
		}
		for k := range list.refs {
			if k == 64 {
				break
			}
			r, err := s.Open(t.Context(), file+"/"+list.refs[k].name)
			kinded(t, err)
			if err == nil {
				kinded(t, r.ReadAt(t.Context(), make([]byte, min(r.Size(), 100)), 0))
				kinded(t, r.Close())
			}
		}
		if names, err := s.Names(t.Context(), file); err != nil || len(names) > len(list.refs) {
			t.Fatalf("%d names of %d are listed, %v", len(names), len(list.refs), err)
		}
		n := &Node{URI: file, open: s, options: Options{}.withDefaults(nil)}
		kinded(t, n.load(t.Context()))
		if _, err := n.Members(t.Context()); err != nil {
			kinded(t, err)
		}
	})
}

// TestReferencesOfOthers: arrays of HDF5 files by kerchunk's references are those that zarr-python reads through
// fsspec.
func TestReferencesOfOthers(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_ZARR")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_ZARR names no interpreter with the packages zarr, kerchunk and h5py")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "testdata/references.py", dir)
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := compare(t, dir, bytes.NewReader(list)); n < 88 {
		t.Errorf("only %d arrays", n)
	}
}
