package zarr

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// record is a row of references.
type record struct {
	Path   *string `parquet:"path,optional,dict"`
	Offset int64   `parquet:"offset"`
	Size   int64   `parquet:"size"`
	Raw    []byte  `parquet:"raw,optional"`
}

// recordBytes returns a file of rows with a few rows in each page.
func recordBytes(t testing.TB, rows ...record) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[record](&b, parquet.PageBufferSize(64), parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(5))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// recordFolder writes a folder of references with an array "a" of 4 × 4 bytes in chunks of 2 × 2, and returns its path.
func recordFolder(t *testing.T, dir string, size int, files map[int][]record) string {
	t.Helper()
	array := strings.ReplaceAll(strings.Trim(refArray, `"`), `\"`, `"`)
	put(t, dir, "refs.parq/.zmetadata", fmt.Sprintf(`{"metadata":{".zgroup":{"zarr_format":2},"a/.zarray":%s},`+
		`"record_size":%d}`, array, size))
	for n, rows := range files {
		put(t, dir, fmt.Sprintf("refs.parq/a/refs.%d.parq", n), string(recordBytes(t, rows...)))
	}
	return filepath.Join(dir, "refs.parq")
}

func to(path string, off, n int64) record { return record{Path: &path, Offset: off, Size: n} }

// TestRecords: the content of chunks is that which a row has, or the range that it names; a row with neither, and a
// file that is not there, are chunks with the fill value.
func TestRecords(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "data.nc", "CDF\x01\x05\x06\x07\x08")
	put(t, dir, "four.nc", "\x05\x06\x07\x08")
	last := record{Raw: []byte{1, 2, 3, 4}}
	want := []byte{5, 6, 9, 9, 7, 8, 9, 9, 9, 9, 1, 2, 9, 9, 3, 4}
	var files source.Files
	defer files.Close()
	for i, first := range []record{to("data.nc", 4, 4), to("four.nc", 0, 0), {Raw: []byte("\x05\x06\x07\x08")},
		{Raw: []byte("base64:BQYHCA==")}, to(filepath.Join(dir, "data.nc"), 4, 4)} {
		for _, c := range []struct {
			size  int
			files map[int][]record
		}{
			{100, map[int][]record{0: {first, {}, {}, last, {}, {}, {}}}},
			{2, map[int][]record{0: {first, {}}, 1: {{}, last}}},
			{1, map[int][]record{0: {first}, 3: {last}}},
		} {
			if err := os.RemoveAll(filepath.Join(dir, "refs.parq")); err != nil {
				t.Fatal(err)
			}
			folder := recordFolder(t, dir, c.size, c.files)
			for _, o := range []source.Opener{&files, source.Below(&files, []string{dir})} {
				if i == 1 && source.RootsOf(o).Bounded() {
					continue // see TestReferencesBelowRoots
				}
				if got, err := read(t.Context(), o, folder); err != nil || !bytes.Equal(got, want) {
					t.Errorf("row %d, record_size %d: %v, %v", i, c.size, got, err)
				}
				if !is(t, o, folder) || !is(t, o, folder+"/a") {
					t.Error("not taken for Zarr")
				}
			}
			at, err := Open(t.Context(), &files, filepath.Join(folder, "a"), Options{})
			if err != nil || at.Array == nil || at.charged < recordMemory {
				t.Fatalf("an array by its own path: %+v, %v", at, err)
			}
			if v, err := at.Array.Verify(t.Context(), 2); err != nil || v.Chunks != 2 || v.Absent != 2 {
				t.Errorf("record_size %d: %+v, %v", c.size, v, err)
			}
		}
	}
}

// TestHostileRecords: what a folder of references may not say is refused with a kind, in an error that names the file.
func TestHostileRecords(t *testing.T) {
	var files source.Files
	defer files.Close()
	top := t.TempDir()
	put(t, top, "outside.nc", "CDF\x01\x05\x06\x07\x08")
	for i, c := range []struct {
		row   record
		roots bool
		kind  fault.Kind
	}{
		{to("data.nc", 4, 5), false, fault.Corrupt}, // past the end
		{to("data.nc", 4, 3), false, fault.Corrupt}, // a chunk of three bytes
		{to("data.nc", 1<<62, 4), false, fault.Corrupt},
		{to("data.nc", 1<<62, 1<<62), false, fault.Corrupt},
		{to("data.nc", -1, 4), false, fault.Corrupt},
		{to("data.nc", 4, -4), false, fault.Corrupt},
		{to("", 4, 4), false, fault.Corrupt},
		{to("gone.nc", 4, 4), false, fault.Corrupt}, // not a chunk with the fill value
		{record{Raw: []byte("base64:%%")}, false, fault.Corrupt},
		{record{Raw: make([]byte, 1<<20)}, false, fault.Limit},
		{to(strings.Repeat("d", maxURL+1), 4, 4), false, fault.Limit},
		{to("simplecache::file://data.nc", 4, 4), false, fault.Unsupported},
		{to("data.nc\n", 4, 4), false, fault.Unsupported},
		{to("gopher://host/data.nc", 4, 4), false, fault.Unsupported},
		{to("../outside.nc", 4, 4), true, fault.NotFound},
		{to("key.pem", 4, 4), true, fault.Unsupported},
		{to("refs.parq/.zmetadata", 4, 4), true, fault.Unsupported},
	} {
		dir := filepath.Join(top, strconv.Itoa(i))
		put(t, dir, "data.nc", "CDF\x01\x05\x06\x07\x08")
		put(t, dir, "key.pem", "-----BEGIN KEY")
		o := source.Opener(&source.Mux{Files: &files})
		if c.roots {
			o = source.Below(o, []string{dir})
		}
		folder := recordFolder(t, dir, 10, map[int][]record{0: {c.row, {}, {}, {}}})
		_, err := read(t.Context(), o, folder)
		if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), top) &&
			!strings.HasPrefix(err.Error(), "gopher://host/data.nc: ") {
			t.Errorf("row %d: %v, want %v", i, err, c.kind)
		}
	}
}

// TestHostileRecordFiles: files that are short, damaged or of other columns, and sizes that cannot be, are refused.
func TestHostileRecordFiles(t *testing.T) {
	var files source.Files
	defer files.Close()
	dir := t.TempDir()
	put(t, dir, "data.nc", "CDF\x01\x05\x06\x07\x08")
	whole := recordBytes(t, to("data.nc", 4, 4), record{}, record{}, record{})
	type other struct {
		Path   int64 `parquet:"path"`
		Offset int64 `parquet:"offset"`
		Size   int64 `parquet:"size"`
	}
	type half struct {
		Path string `parquet:"path"`
	}
	write := func(rows any) string {
		var b bytes.Buffer
		var err error
		switch rows := rows.(type) {
		case []other:
			err = parquet.Write(&b, rows)
		case []half:
			err = parquet.Write(&b, rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, b := range map[string]string{
		"short":   string(recordBytes(t, to("data.nc", 4, 4))), // one row, where four chunks are
		"cut":     string(whole[:len(whole)/2]),
		"empty":   "",
		"type":    write([]other{{}, {}, {}, {}}),
		"columns": write([]half{{}, {}, {}, {}}),
	} {
		folder := recordFolder(t, dir, 4, nil)
		put(t, dir, "refs.parq/a/refs.0.parq", b)
		_, err := read(t.Context(), &files, folder)
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "refs.0.parq: a/") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, size := range []int{0, -1, maxRecordSize + 1} {
		_, err := read(t.Context(), &files, recordFolder(t, dir, size, nil))
		if fault.KindOf(err) != fault.Limit || !strings.Contains(err.Error(), consolidated) {
			t.Errorf("record_size %d: %v", size, err)
		}
	}
	n, err := Open(t.Context(), &files, recordFolder(t, dir, 1, nil)+"/b", Options{})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("an array that is not there: %v, %v", n, err)
	}
}

// TestRecordsAreKept: a page is read once for all its rows, and the memory of what is kept is bounded.
func TestRecordsAreKept(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "data.nc", "CDF\x01\x05\x06\x07\x08")
	row := to("data.nc", 4, 4)
	folder := recordFolder(t, dir, 4, map[int][]record{0: {row, row, row, row}})
	o := &countedOpens{opens: map[string]int{}}
	defer o.files.Close()
	n, err := Open(t.Context(), o, folder, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := n.open.(*references).list.(*records)
	opens := func() int { return o.opens["refs.0.parq"] }
	for i := range 4 {
		if _, ok, err := s.find(t.Context(), fmt.Sprintf("a/%d.%d", i/2, i%2)); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if i == 0 {
			clear(o.opens)
		}
	}
	if opens() != 0 {
		t.Errorf("the file was opened %d times for rows of a page that was read", opens())
	}
	if used := s.kept.Used(); used == 0 || s.kept.Bound() != recordMemory {
		t.Errorf("%d of %d bytes are kept", used, s.kept.Bound())
	}
}

// TestDamagedFilesAreReadOnce: a damaged file is read once for all its rows, and each says what is wrong. An error that
// is of no file, such as one of the network, is not kept.
func TestDamagedFilesAreReadOnce(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "data.nc", "CDF\x01\x05\x06\x07\x08")
	row := to("data.nc", 4, 4)
	folder := recordFolder(t, dir, 4, nil)
	b := recordBytes(t, row, row, row, row)
	at := bytes.Index(b, []byte{0x28, 0xb5, 0x2f, 0xfd}) // a frame of zstd: the page, or its dictionary
	if at < 0 {
		t.Fatal("no compressed page")
	}
	b[at] ^= 1
	put(t, dir, "refs.parq/a/refs.0.parq", string(b))
	o := &countedOpens{opens: map[string]int{}}
	defer o.files.Close()
	n, err := Open(t.Context(), o, folder, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := n.open.(*references).list.(*records)
	o.err = errors.New("the network is down")
	if _, _, err := s.find(t.Context(), "a/0.0"); !errors.Is(err, o.err) {
		t.Errorf("without a network: %v", err)
	}
	o.err = nil
	clear(o.opens)
	for i := range 4 {
		name := fmt.Sprintf("a/%d.%d", i/2, i%2)
		_, _, err := s.find(t.Context(), name)
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), name) {
			t.Errorf("row %d: %v", i, err)
		}
	}
	if n := o.opens["refs.0.parq"]; n != 1 {
		t.Errorf("the file was opened %d times", n)
	}
}

// countedOpens counts how often each file is opened, by its last name.
type countedOpens struct {
	files source.Files
	opens map[string]int
	err   error // of all opens, if it is set
}

// Open implements source.Opener.
func (c *countedOpens) Open(ctx context.Context, uri string) (source.Reader, error) {
	c.opens[filepath.Base(uri)]++
	if c.err != nil {
		return nil, c.err
	}
	return c.files.Open(ctx, uri)
}

// TestCommittedRecords: arrays that fsspec's references in Parquet describe, written by fastparquet and by pyarrow,
// have the cells that zarr-python read through them.
func TestCommittedRecords(t *testing.T) {
	z, err := zip.OpenReader("testdata/records.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	list, err := os.Open("testdata/records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	if n := compare(t, dir, list); n != 32 {
		t.Errorf("%d arrays, 32 are in the list", n)
	}
}

// TestRandomRecords is TestCommittedRecords with others.
func TestRandomRecords(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_ZARR")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_ZARR names no interpreter with the packages zarr, fsspec and kerchunk")
	}
	seed := rand.Uint64() >> 12
	if s := os.Getenv("CHASKI_ORACLE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CHASKI_ORACLE_SEED=%d", seed)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	folders := 50
	if testing.Short() {
		folders = 15
	}
	cmd := exec.CommandContext(ctx, python, "testdata/records.py", dir, strconv.FormatUint(seed, 10),
		strconv.Itoa(folders))
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := compare(t, dir, bytes.NewReader(list)); n != 4*folders {
		t.Errorf("%d arrays", n)
	}
}

// FuzzRecords: a file of references of any content is read or refused with a kind, and every row of it leads to bytes,
// or is refused.
func FuzzRecords(f *testing.F) {
	f.Add(recordBytes(f, to("data.nc", 4, 4), record{}, to("data.nc", 0, 0), record{Raw: []byte("base64:AQIDBA==")}),
		uint8(4))
	f.Add(recordBytes(f, to("../x", -1, 4), to("s3://b/x", 1<<62, 1<<62), record{Raw: []byte("x")}), uint8(1))
	dir := f.TempDir()
	for _, name := range []string{"data.nc", "refs.parq/a/refs.0.parq"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("CDF\x01\x05\x06\x07\x08"), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	var files source.Files
	f.Cleanup(func() { _ = files.Close() })
	o := source.Below(&source.Mux{Files: &files}, []string{dir})
	folder := filepath.Join(dir, "refs.parq")
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		if err := os.WriteFile(filepath.Join(folder, "a/refs.0.parq"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		n := &Node{URI: folder, open: o, options: Options{}.withDefaults(nil)}
		meta := `{"a/.zarray":` + strings.ReplaceAll(strings.Trim(refArray, `"`), `\"`, `"`) + "}"
		kinded(t, n.referRecords(t.Context(), folder, object{"metadata": []byte(meta),
			"record_size": strconv.AppendUint(nil, uint64(size), 10)}))
		s, ok := n.open.(*references)
		if !ok {
			return
		}
		for i := range 8 {
			r, err := s.Open(t.Context(), fmt.Sprintf("%s/a/%d.%d", folder, i/4, i%4))
			kinded(t, err)
			if err != nil {
				continue
			}
			kinded(t, r.ReadAt(t.Context(), make([]byte, min(r.Size(), 100)), 0))
			kinded(t, r.Close())
		}
		if used := s.list.(*records).kept.Used(); used > recordMemory {
			t.Fatalf("%d bytes are kept", used)
		}
	})
}
