package envi_test

import (
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/envi"
)

// FuzzParse: a header of any content is read or refused with a kind, and its chunks lie in the file.
func FuzzParse(f *testing.F) {
	for _, interleave := range [...]string{"bsq", "bil", "bip"} {
		f.Add("ENVI\ndescription = {\na}\nsamples = 7\nlines   = 5\nbands   = 3\nheader offset = 0\n"+
			"file type = ENVI Standard\ndata type = 12\ninterleave = "+interleave+"\nbyte order = 0\n"+
			"map info = {UTM, 1, 1, 500000, 4500000, 10, 10, 33, North,WGS-84}\n"+
			"band names = {\nBand 1,\nBand 2,\nBand 3}\ndata ignore value = 7\n", int64(210))
	}
	f.Add("ENVI\nsamples = 2147483647\nlines = 2147483647\nbands = 65536\n", int64(1)<<62)
	f.Add("ENVI\nsamples = 1\nlines = 2147483647\ninterleave = bil\n", int64(1)<<40)
	f.Fuzz(func(t *testing.T, text string, size int64) {
		header, err := envi.Parse(text, size, 1<<28)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		for _, r := range header.Index.Ranges {
			if r.Off < 0 || r.Len < 0 || r.Off > size-r.Len {
				t.Fatalf("%+v in %d bytes", r, size)
			}
		}
	})
}
