package geozl

import (
	"bytes"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl"
)

// FuzzFrame: any frame yields an error with a kind, or outputs that do not depend on earlier
// frames, and Decompress agrees with Decode.
func FuzzFrame(f *testing.F) {
	for _, o := range own(f) {
		f.Add(o[0])
	}
	o := openzl.Options{MaxOutput: 1 << 20, SkipChecksums: true, Custom: Codecs()}
	used := openzl.NewDecoder(o)
	f.Fuzz(func(t *testing.T, frame []byte) {
		outs, err := openzl.NewDecoder(o).Decode(frame)
		again, err2 := used.Decode(frame)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			if err2 == nil {
				t.Fatalf("a decoder in use accepts what a new one refuses: %v", err)
			}
			return
		}
		if err2 != nil || len(again) != len(outs) {
			t.Fatalf("a decoder in use: %d outputs, want %d: %v", len(again), len(outs), err2)
		}
		for i, a := range outs {
			if !bytes.Equal(a.Data, again[i].Data) {
				t.Fatalf("output %d differs in a decoder in use", i)
			}
		}
		if len(outs) == 1 && outs[0].Type == openzl.Numeric {
			dst := make([]byte, len(outs[0].Data)+1)[1:]
			if err := used.Decompress(dst, frame, outs[0].Width); err != nil || !bytes.Equal(dst, outs[0].Data) {
				t.Fatalf("Decompress differs: %v", err)
			}
		}
	})
}
