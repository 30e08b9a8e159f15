package scan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

func testSums[T Unsigned](t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 150).Draw(t, "n")
		off := rapid.IntRange(0, 3).Draw(t, "offset")
		draw := func(name string) []T {
			s := make([]T, n+off)
			seed := rapid.Uint64().Draw(t, name) | 1
			for i := range s {
				seed ^= seed << 13
				seed ^= seed >> 7
				seed ^= seed << 17
				s[i] = T(seed)
			}
			return s[off:]
		}
		src, above, first := draw("src"), draw("above"), T(rapid.Uint64().Draw(t, "first"))
		for name, zig := range map[string]bool{"plain": false, "zigzag": true} {
			sums, overs, mapped := make([]T, n), make([]T, n), make([]T, n)
			v := T(0)
			for i, x := range src {
				if zig {
					if x&1 == 0 {
						x /= 2
					} else {
						x = -(x/2 + 1)
					}
					mapped[i] = x
				}
				v += x
				sums[i], overs[i] = v, v+above[i]
			}
			check := func(what string, want []T, f func(dst, src []T)) {
				got := make([]T, n+off+1)[off : off+n]
				f(got, src)
				if !slices.Equal(got, want) {
					t.Fatalf("%s %s: got %v, want %v", name, what, got, want)
				}
				got = slices.Clone(src)
				f(got, got)
				if !slices.Equal(got, want) {
					t.Fatalf("%s %s in place: got %v, want %v", name, what, got, want)
				}
			}
			if zig {
				check("sum", sums, SumZigzag[T])
				check("above", overs, func(d, s []T) { SumZigzagAbove(d, s, above) })
				check("mapping", mapped, Zigzag[T])
				continue
			}
			check("above", overs, func(d, s []T) { SumAbove(d, s, above) })
			added := make([]T, n)
			for i, x := range src {
				added[i] = x + above[i]
			}
			check("add", added, func(d, s []T) { Add(d, s, above) })
			last := first
			for i := range sums {
				sums[i] += first
				last = sums[i]
			}
			check("sum", sums, func(d, s []T) {
				if v := Sum(d, s, first); v != last {
					t.Fatalf("last sum %v, want %v", v, last)
				}
			})
		}
	})
}

// TestSums: sums equal one addition after the other, for any length and address.
func TestSums(t *testing.T) {
	t.Run("8", testSums[uint8])
	t.Run("16", testSums[uint16])
	t.Run("32", testSums[uint32])
	t.Run("64", testSums[uint64])
}
