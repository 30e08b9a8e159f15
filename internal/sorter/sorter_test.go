package sorter

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// TestAnyRecords: records come in the order of their keys, once each, with the value that was added first, however many
// pieces memory holds. The judge is a map and a sort of all.
func TestAnyRecords(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		keys := rapid.SliceOf(rapid.StringMatching("[ab./]{0,4}")).Draw(r, "keys")
		if rapid.Bool().Draw(r, "sorted") {
			slices.Sort(keys)
		}
		s := New(rapid.IntRange(1, 300).Draw(r, "memory"), func(r Record) int64 { return int64(len(r.Value)) })
		first := map[string]string{}
		sum := int64(0)
		for i, k := range keys {
			v := fmt.Sprint(i)
			if _, there := first[k]; !there {
				first[k] = v
				sum += int64(len(v))
			}
			if err := s.Add(Record{k, []byte(v)}); err != nil {
				r.Fatal(err)
			}
		}
		count, total, err := s.Total()
		if err != nil || count != int64(len(first)) || total != sum {
			r.Fatalf("%d records of %d, %v, want %d of %d", count, total, err, len(first), sum)
		}
		want := make([]string, 0, len(first))
		for k := range first {
			want = append(want, k)
		}
		slices.Sort(want)
		for range 2 {
			i := 0
			err := s.Each(func(got Record) error {
				if i >= len(want) || got.Key != want[i] || string(got.Value) != first[want[i]] {
					r.Fatalf("record %d is %q %q", i, got.Key, got.Value)
				}
				i++
				return nil
			})
			if err != nil || i != len(want) {
				r.Fatalf("%d records, %v, want %d", i, err, len(want))
			}
		}
		if err := s.Close(); err != nil {
			r.Fatal(err)
		}
	})
}
