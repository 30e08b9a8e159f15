package containers

import (
	"testing"

	"github.com/chaski-eo/chaski/store"
)

// FuzzSubfile parses any name of a byte range: what it accepts has no negative offset or size, and store.Entry.VSI
// writes it back so that it is read as the same range. Any range of a file without a scheme survives both, unless it is
// empty: a size of 0 reaches to the end of the file, as GDAL has it.
func FuzzSubfile(f *testing.F) {
	for _, s := range []string{"/vsisubfile/0_10,a.tif", "/vsisubfile/7_0,", "/vsisubfile/-1_5,a",
		"/vsisubfile/1_2_3,a",
		"/vsisubfile/9223372036854775807_9223372036854775807,s3://b/k", "/vsisubfile/+1_2,a", "data.taco::img1/lrf::2",
		"/vsisubfile/0_10,/vsisubfile/1_2,a", "/vsisubfile/1_2,file://s3://a"} {
		f.Add(s, int64(5), int64(7))
	}
	f.Fuzz(func(t *testing.T, name string, off, size int64) {
		if e, ok := Subfile(name); ok {
			if e.Offset < 0 || e.Size < 0 {
				t.Fatalf("%q: %+v", name, e)
			}
			again, ok := Subfile(e.VSI())
			if !ok || again.Offset != e.Offset || again.Size != e.Size {
				t.Fatalf("%q is %+v, written back %q, which is %+v", name, e, e.VSI(), again)
			}
			for range 4 {
				if second := e.VSI(); second != e.VSI() {
					t.Fatalf("%q has two names: %q", name, second)
				}
			}
		}
		if off < 0 || size < 1 {
			return
		}
		e := store.Entry{URI: "/d/" + name, Offset: off, Size: size}
		if got, ok := Subfile(e.VSI()); !ok || got.URI != e.URI || got.Offset != off || got.Size != size {
			t.Fatalf("%+v is read as %+v", e, got)
		}
	})
}
