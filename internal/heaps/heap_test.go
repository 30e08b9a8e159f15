package heaps

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

type number struct{ n, place int }

func (a *number) Before(b *number) bool { return a.n < b.n }
func (a *number) Place() *int           { return &a.place }

// TestAgainstSorted: the first item is the least of those that were added, changed and not taken out, and each knows
// its place.
func TestAgainstSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heap Heap[*number]
		var list []*number
		for _, n := range rapid.SliceOf(rapid.IntRange(-9, 9)).Draw(t, "numbers") {
			some := len(list) > 0
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what == 0 && some:
				k := rapid.IntRange(0, len(list)-1).Draw(t, "which")
				heap.Remove(list[k])
				if heap.Remove(list[k]); list[k].place != Outside {
					t.Fatal("it was taken out and has a place")
				}
				list = slices.Delete(list, k, k+1)
			case what == 1 && some:
				changed := list[rapid.IntRange(0, len(list)-1).Draw(t, "which")]
				changed.n = n
				heap.Fix(changed)
			default:
				list = append(list, &number{n: n})
				heap.Add(list[len(list)-1])
			}
			if len(heap) != len(list) {
				t.Fatalf("%d items, want %d", len(heap), len(list))
			}
			for i, item := range heap {
				if item.place != i {
					t.Fatalf("item %d is at %d", i, item.place)
				}
			}
			least := func(a, b *number) int { return cmp.Compare(a.n, b.n) }
			if len(list) > 0 && heap[0].n != slices.MinFunc(list, least).n {
				t.Fatalf("%d is first", heap[0].n)
			}
		}
	})
}
