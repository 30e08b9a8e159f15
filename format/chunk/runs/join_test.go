package runs_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// TestJoin: the spans of ranges in the order of the file are those of the rule in words: a range begins a new span if
// more than MaxGap bytes lie before it that are in no range of the span, or if the span would be longer than MaxLen.
func TestJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) chunk.Range {
			return chunk.Range{Off: rapid.Int64Range(0, 60).Draw(t, "off"), Len: rapid.Int64Range(1, 12).Draw(t, "len")}
		}), 1, 12).Draw(t, "ranges")
		slices.SortStableFunc(ranges, func(a, b chunk.Range) int { return int(a.Off - b.Off) })
		maxGap, maxLen := rapid.Int64Range(0, 8).Draw(t, "gap"), rapid.Int64Range(1, 30).Draw(t, "length")

		join := runs.Join{Span: ranges[0], MaxGap: maxGap, MaxLen: maxLen}
		var got [][2]int64 // first byte, and the byte behind the last one
		for _, r := range ranges[1:] {
			if !join.Take(r) {
				got = append(got, [2]int64{join.Span.Off, join.Span.Off + join.Span.Len})
				join.Span = r
			}
		}
		got = append(got, [2]int64{join.Span.Off, join.Span.Off + join.Span.Len})

		// The oracle paints bytes.
		var want [][2]int64
		var painted [100]bool
		first, last := int64(-1), int64(-1)
		for _, r := range ranges {
			if first >= 0 {
				gap := int64(0)
				for b := last + 1; b < r.Off; b++ {
					if !painted[b] {
						gap++
					}
				}
				if gap > maxGap || max(last, r.Off+r.Len-1)-first+1 > maxLen {
					want = append(want, [2]int64{first, last + 1})
					first, painted = -1, [100]bool{}
				}
			}
			if first < 0 {
				first, last = r.Off, -1
			}
			for b := r.Off; b < r.Off+r.Len; b++ {
				painted[b] = true
			}
			last = max(last, r.Off+r.Len-1)
		}
		want = append(want, [2]int64{first, last + 1})
		if !slices.Equal(got, want) {
			t.Fatalf("ranges %v, gap %d, length %d: got spans %v; want %v", ranges, maxGap, maxLen, got, want)
		}
	})
}

// TestJoinRefusesEarlierRanges: a range before the span, such as of a reader whose turn comes late, is not joined.
func TestJoinRefusesEarlierRanges(t *testing.T) {
	join := runs.Join{Span: chunk.Range{Off: 10, Len: 5}, MaxGap: 100, MaxLen: 100}
	if join.Take(chunk.Range{Off: 9, Len: 2}) || join.Span != (chunk.Range{Off: 10, Len: 5}) {
		t.Errorf("got the span %v; want that an earlier range is refused", join.Span)
	}
}
