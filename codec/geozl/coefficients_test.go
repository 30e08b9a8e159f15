package geozl

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/codec/openzl"
	"github.com/chaski-eo/chaski/fault"
)

// TestCoefficients: vectors that the original library put into the comment of a frame are read; cut, extended or
// changed comments are refused, and other comments have none.
func TestCoefficients(t *testing.T) {
	frame, err := os.ReadFile(filepath.Join("testdata", "graph-coefficients.zl"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := openzl.Inspect(frame)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Coefficients(info.Comment)
	if want := [][]int32{{1, -2, 3}, {math.MaxInt32, math.MinInt32}, {0}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v: %v", got, want, err)
	}
	for n := range info.Comment {
		got, err := Coefficients(info.Comment[:n])
		if got != nil || n >= 4 != errors.Is(err, fault.Corrupt) {
			t.Errorf("%d bytes: %v, %v", n, got, err)
		}
	}
	for _, c := range []string{
		"GZC1\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00", "GZC1\x01\x00", "GZC1\x01\x01\x00\x00\x00\x00",
		string(info.Comment) + "\x00",
		"GZC1\x01\x01\xff\xff\xff\xff\x00\x00\x00\x00",
	} {
		if _, err := Coefficients([]byte(c)); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%q: %v", c, err)
		}
	}
	if got, err := Coefficients([]byte("a comment")); got != nil || err != nil {
		t.Errorf("another comment: %v, %v", got, err)
	}
}

// FuzzCoefficients: any comment is refused with a kind, or holds as many numbers as it has room for.
func FuzzCoefficients(f *testing.F) {
	f.Add([]byte("GZC1\x01\x02\x01\x00\x00\x00\x05\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, comment []byte) {
		vectors, err := Coefficients(comment)
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
		size := coefficientsHead
		for _, v := range vectors {
			size += 4 + 4*len(v)
		}
		if vectors != nil && size != len(comment) {
			t.Fatalf("%d bytes of vectors in %d", size, len(comment))
		}
	})
}
