package arrays

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
)

// unwritten are chunks of which none was written.
type unwritten struct{}

func (unwritten) Prepare(context.Context) error { return nil }

func (unwritten) Find(context.Context, []int64) (chunk.Stored, error) {
	return chunk.Stored{Absent: true}, nil
}

// TestUnwritten: numbers that were not written are the fill value, and texts the text that is theirs.
func TestUnwritten(t *testing.T) {
	n := New(t.Context(), nil, "a", nil, Options{})
	n.PutArray("numbers", &Meta{Shape: []int64{3, 2}, Chunks: []int64{2, 2}, DType: chunk.Int16, Fill: []byte{7, 1}},
		unwritten{}, nil)
	text := func(_ context.Context, data []byte) (list []string, err error) {
		for piece := range slices.Chunk(data, 4) {
			list = append(list, string(piece))
		}
		return list, nil
	}
	n.PutArray("texts", &Meta{Shape: []int64{3, 4}, Chunks: []int64{2, 4}, DType: chunk.Uint8, Fill: []byte("none")},
		unwritten{}, text)
	for name, want := range map[string]string{"texts": "[none none none]",
		"numbers": "[[263 263] [263 263] [263 263]]"} {
		labels, err := n.Labels(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var got []any
		for i := range labels.Len() {
			v := labels.Value(i)
			if v.List == nil {
				got = append(got, string(v.Text))
				continue
			}
			var list []int64
			for _, number := range v.List {
				list = append(list, number.Int)
			}
			got = append(got, list)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
}
