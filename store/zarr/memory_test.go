package zarr

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// manyArrays writes a group of consolidated metadata of n arrays, each with attributes.
func manyArrays(t *testing.T, dir string, n int) {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","metadata":{`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		attrs := `"attributes":{"units":"1","long_name":"` + strings.Repeat("x", 300) + `","a":[1,2,3]},"codecs"`
		fmt.Fprintf(&b, `"a%06d":%s`, i, strings.Replace(plainArray, `"codecs"`, attrs, 1))
	}
	b.WriteString("}}}")
	put(t, dir, "zarr.json", b.String())
}

// heap returns the bytes of objects that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMetadataIsCharged: what the metadata of many arrays takes in memory is charged to the opening, before it is
// there, and given back.
func TestMetadataIsCharged(t *testing.T) {
	race.SkipCovered(t)
	dir := t.TempDir()
	manyArrays(t, dir, 5000)
	var files openers.Files
	defer files.Close()
	b := budget.New(256 << 20)
	account, err := b.Open(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	n, err := Open(budget.With(t.Context(), account), &files, dir, arrays.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := n.Members(t.Context())
	if err != nil || len(list) != 5000 {
		t.Fatal(len(list), err)
	}
	took := heap() - before
	runtime.KeepAlive(n)
	runtime.KeepAlive(list)
	t.Logf("5,000 arrays take %d bytes, %d are charged", took, account.Held())
	if took < 1<<20 || account.Held() < took {
		t.Errorf("5,000 arrays take %d bytes, of which %d are charged", took, account.Held())
	}
	account.Close()

	small := budget.New(1 << 20)
	if account, err = small.Open(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	_, err = Open(budget.With(t.Context(), account), &files, dir, arrays.Options{})
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("metadata that does not fit: %v", err)
	}
	if account.Held() != 1 {
		t.Errorf("%d bytes stay charged after the opening failed", account.Held()-1)
	}
	account.Close()
	if b.Used() != 0 || small.Used() != 0 {
		t.Errorf("%d and %d bytes are used in the end", b.Used(), small.Used())
	}
}

// TestListedMetadataIsCharged: the arrays of a group that is listed are charged together, and the groups between them
// are not charged for longer than they are read.
func TestListedMetadataIsCharged(t *testing.T) {
	race.SkipCovered(t)
	dir := t.TempDir()
	group := `{"zarr_format":3,"node_type":"group","attributes":{"text":"` + strings.Repeat("x", 50000) + `"}}`
	array := strings.Replace(plainArray, `"codecs"`,
		`"attributes":{"text":"`+strings.Repeat("x", 50000)+`"},"codecs"`, 1)
	put(t, dir, "zarr.json", `{"zarr_format":3,"node_type":"group"}`)
	for i := range 20 {
		put(t, dir, fmt.Sprintf("g%d/zarr.json", i), group)
	}
	own := &openers.Files{}
	defer func() { own.Close() }()
	members := func(t *testing.T, limit int64) (int64, error) {
		account, err := budget.New(limit).Open(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer account.Close()
		ctx := budget.With(t.Context(), account)
		n, err := Open(ctx, own, dir, arrays.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.Members(ctx)
		return account.Held(), err
	}
	if held, err := members(t, 1<<20); err != nil || held > 10000 {
		t.Errorf("20 groups: %d bytes are charged, %v", held, err)
	}
	for i := range 20 {
		put(t, dir, fmt.Sprintf("g%d/a/zarr.json", i), array)
	}
	if held, err := members(t, 16<<20); err != nil || held < 20*50000 {
		t.Errorf("20 arrays: %d bytes are charged, %v", held, err)
	}
	synctest.Test(t, func(t *testing.T) { // a budget waits for others to end
		own.Close()
		own = &openers.Files{}
		defer own.Close()
		if _, err := members(t, 1<<20); fault.KindOf(err) != fault.Limit {
			t.Errorf("20 arrays in too little memory: %v", err)
		}
	})
}

// TestIndexesAreCharged: the arrays of a group share one bound of indexes. Where one index of each is more, it is
// charged before anything is read.
func TestIndexesAreCharged(t *testing.T) {
	sharded := func(side int) string {
		text := strings.Replace(plainArray, `"bytes"`, `{"name":"sharding_indexed","configuration":{`+
			`"chunk_shape":[1,1],"codecs":["bytes"],"index_codecs":[`+
			`{"name":"bytes","configuration":{"endian":"little"}}]}}`, 1)
		text = strings.Replace(text, "[2,2]", fmt.Sprintf("[%d,%d]", side, side), 1)
		return strings.Replace(text, "[4,4]", fmt.Sprintf("[%d,%d]", side, 64*side), 1)
	}
	dir := t.TempDir()
	put(t, dir, "zarr.json", `{"zarr_format":3,"node_type":"group"}`)
	put(t, dir, "g/zarr.json", `{"zarr_format":3,"node_type":"group"}`)
	for _, name := range []string{"g/a", "g/b"} {
		put(t, dir, name+"/zarr.json", sharded(16))
		for x := range 64 {
			put(t, dir, fmt.Sprintf("%s/c/0/%d", name, x), strings.Repeat("\xff", 16*16*indexEntry))
		}
	}
	put(t, dir, "large/zarr.json", sharded(2048)) // an index of 64 MiB
	var files openers.Files
	defer files.Close()
	b := budget.New(16 << 20)
	account, err := b.Open(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer account.Close()
	ctx := budget.With(t.Context(), account)
	const bound = 8192 // less than an index of each, which has 4 KiB and more
	n, err := Open(ctx, &files, dir, arrays.Options{MaxIndexes: bound})
	if err != nil {
		t.Fatal(err)
	}
	r, err := n.Raster(ctx, "g", "g", "")
	if err != nil {
		t.Fatal(err)
	}
	kept := r.(*arrays.Raster).Arrays()[0].Indexes()
	if kept.Bound() <= bound || kept.Bound() > 4*bound || account.Held() < kept.Bound()-bound {
		t.Errorf("a bound of %d bytes, %d are charged", kept.Bound(), account.Held())
	}
	for _, a := range r.(*arrays.Raster).Arrays() {
		for x := range int64(64) {
			if p, err := a.Find(t.Context(), []int64{0, 16 * x}); err != nil || !p.Absent {
				t.Fatal(p, err)
			}
		}
	}
	if used := kept.Used(); used > kept.Bound() || used < bound/2 {
		t.Errorf("%d bytes of indexes are kept, the bound is %d", used, kept.Bound())
	}
	if _, err := n.Raster(ctx, "large", "large", ""); fault.KindOf(err) != fault.Limit {
		t.Errorf("an index of 64 MiB in a budget of 16: %v", err)
	}
}
