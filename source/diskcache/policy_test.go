//go:build unix

package diskcache

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/source"
)

// readsOf returns reads of ranges of one block, each of an object of its own.
func readsOf(numbers []int) []stored {
	var out []stored
	for _, n := range numbers {
		out = append(out, stored{NameObject(fmt.Sprint(n), "", "tag", 100), Span{0, 100}})
	}
	return out
}

// simulate returns the hits of reads in a simulation that looks ahead so many places.
func simulate(quota int64, reads []stored, ahead int64) (hits int64) {
	s := NewSimulation(quota)
	for at, r := range reads {
		s.Expect(int64(at), r.Object, r.Span)
		for s.Through = int64(at) + 1; s.Known(ahead); {
			s.Next(math.MaxInt64)
		}
	}
	for s.Next(math.MaxInt64) {
	}
	return s.HitBytes
}

// most returns the most hits that a cache of so many ranges of one size can have, by trying all that it could do.
func most(room int, reads []int, held map[int]bool) (hits int) {
	if len(reads) == 0 {
		return 0
	}
	now, rest := reads[0], reads[1:]
	if held[now] {
		return 1 + most(room, rest, held)
	}
	hits = most(room, rest, held) // it is not kept
	with := func(without int) {
		next := map[int]bool{now: true}
		for k := range held {
			next[k] = k != without
			if k == without {
				delete(next, k)
			}
		}
		hits = max(hits, most(room, rest, next))
	}
	if len(held) < room {
		with(-1)
		return hits
	}
	for k := range held {
		with(k)
	}
	return hits
}

// TestNothingHasMoreHits: with all reads known before, no other choice of ranges has more hits.
func TestNothingHasMoreHits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.IntRange(1, 3).Draw(t, "room")
		numbers := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 11).Draw(t, "reads")
		want := int64(most(room, numbers, map[int]bool{}))
		if got := simulate(int64(room)*blockBytes, readsOf(numbers), math.MaxInt32) / 100; got != want {
			t.Fatalf("%d hits, %d are possible", got, want)
		}
	})
}

// TestHorizon: with ranges of any size that overlap, and reads that are known some places ahead, the hits are those of
// a search through all reads for each decision.
func TestHorizon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quota := int64(rapid.IntRange(0, 12).Draw(t, "quota")) * blockBytes
		ahead := rapid.IntRange(0, 20).Draw(t, "ahead")
		var reads []stored
		for range rapid.IntRange(1, 40).Draw(t, "reads") {
			from := rapid.Int64Range(0, 20).Draw(t, "from") * blockBytes / 2
			size := rapid.Int64Range(1, 4*blockBytes).Draw(t, "size")
			object := NameObject(fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "object")), "", "tag", 1<<20)
			reads = append(reads, stored{object, Span{from, from + size}})
		}
		want := searched(quota, reads, ahead)
		if got := simulate(quota, reads, int64(ahead)); got != want {
			t.Fatalf("%d bytes of hits, the search has %d", got, want)
		}
	})
}

// searched returns the bytes of hits by the rule, found in the slowest way.
func searched(quota int64, reads []stored, ahead int) (hits int64) {
	type heldRange struct {
		stored
		last int // the order in which it was held
	}
	var held []heldRange
	used := int64(0)
	touches := func(a, b stored) bool {
		return a.Object == b.Object && a.From < b.End && b.From < a.End
	}
	for now, r := range reads {
		next := func(s stored) int {
			for k := now + 1; k < len(reads) && k <= now+ahead; k++ {
				if touches(s, reads[k]) {
					return k
				}
			}
			return math.MaxInt
		}
		var gaps []Span // byte by byte in blocks of one
		have := make([]bool, r.len())
		for _, h := range held {
			if h.Object == r.Object {
				for b := max(h.From, r.From); b < min(h.End, r.End); b++ {
					have[b-r.From] = true
				}
			}
		}
		for b, there := range have {
			if there {
				continue
			}
			if b > 0 && !have[b-1] {
				gaps[len(gaps)-1].End++
				continue
			}
			gaps = append(gaps, Span{r.From + int64(b), r.From + int64(b) + 1})
		}
		hits += r.len()
		if len(gaps) > 0 {
			hits -= gaps[len(gaps)-1].End - gaps[0].From
		}
		for _, gap := range gaps {
			s := stored{r.Object, gap}
			fits := costOf(s.len()) <= quota
			for fits && used+costOf(s.len()) > quota {
				worst := -1
				for k, h := range held {
					if next(h.stored) > next(s) && (worst < 0 || next(h.stored) > next(held[worst].stored)) {
						worst = k
					}
				}
				if fits = worst >= 0; fits {
					used -= costOf(held[worst].len())
					held = append(held[:worst], held[worst+1:]...)
				}
			}
			if fits {
				used += costOf(s.len())
				held = append(held, heldRange{s, now})
			}
		}
	}
	return hits
}

// TestSharesOfHits: with room for a tenth of some files of which each has four windows in an epoch, dropping the one
// that was read longest ago has 8 % of hits, holding what came first 10 %, and Belady's rule 35 %.
func TestSharesOfHits(t *testing.T) {
	const files, windows, room, epochs = 1000, 4, 100, 5
	var numbers []int
	rnd := rand.New(rand.NewPCG(1, 2))
	for range epochs {
		for _, k := range rnd.Perm(files * windows) {
			numbers = append(numbers, k/windows)
		}
	}
	reads := readsOf(numbers)
	share := func(hits int64) float64 { return float64(hits) / 100 / float64(len(reads)) }
	pinned := NewSimulation(room * blockBytes)
	for _, r := range reads {
		pinned.Read(r.Object, r.Span)
	}
	last, lru := map[int]int{}, int64(0)
	for now, n := range numbers {
		before, known := last[n]
		between := map[int]bool{}
		for k := now - 1; known && k > before && len(between) < room; k-- {
			between[numbers[k]] = true
		}
		if known && len(between) < room {
			lru += 100
		}
		last[n] = now
	}
	for name, c := range map[string]struct{ got, low, high float64 }{
		"the last used ones":         {share(lru), 0.06, 0.10},
		"the first ones":             {share(pinned.HitBytes), 0.09, 0.105},
		"Belady":                     {share(simulate(room*blockBytes, reads, files*windows)), 0.34, 0.40},
		"Belady a tenth of an epoch": {share(simulate(room*blockBytes, reads, files*windows/8)), 0.32, 0.40},
	} {
		t.Logf("%s: %.3f", name, c.got)
		if c.got < c.low || c.got > c.high {
			t.Errorf("%s: %.3f of the reads are hits", name, c.got)
		}
	}
}

// TestFolderDoesWhatItsPlanSays: reads that a run announces have the hits of the simulation, byte for byte, the right
// bytes, and the quota is never exceeded.
func TestFolderDoesWhatItsPlanSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path, err := os.MkdirTemp("", "diskcache")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		quota := int64(rapid.IntRange(1, 30).Draw(t, "quota")) * 8 * blockBytes
		ahead := rapid.IntRange(0, 20).Draw(t, "ahead")
		f, s := openFolder(t, path, quota), NewSimulation(quota)
		defer f.Close()
		type read struct {
			stored
			id int
		}
		var reads []read
		for range rapid.IntRange(1, 40).Draw(t, "reads") {
			id := rapid.IntRange(0, 3).Draw(t, "object")
			from := rapid.Int64Range(0, 8).Draw(t, "from") * pageBytes / 2
			end := from + rapid.Int64Range(1, 3*pageBytes).Draw(t, "size")
			object := NameObject(fmt.Sprint(id), "", "tag", objectBytes)
			reads = append(reads, read{stored{object, Span{from, end}}, id})
		}
		run, announced := f.NewRun(7), 0
		run.Ready()
		for now, r := range reads {
			for ; announced < len(reads) && announced <= now+ahead+1; announced++ {
				next := reads[announced]
				run.Expect(int64(announced)+7, next.Object, source.Range{Off: next.From, Len: next.len()})
				s.Expect(int64(announced), next.Object, next.Span)
			}
			run.Begin(int64(now) + 7)
			s.Next(math.MaxInt64)
			want, got := contentOf(r.id, 0)[r.From:r.End], make([]byte, r.len())
			err := f.Fill(context.Background(), r.Object, got, r.From, func(p []byte, off int64) error {
				copy(p, contentOf(r.id, 0)[off:])
				return nil
			})
			if err != nil || string(got) != string(want) {
				t.Fatalf("wrong bytes, %v", err)
			}
			run.Over(int64(now) + 7)
			if hits := f.Stats().HitBytes; hits != s.HitBytes {
				t.Fatalf("after %d reads %d bytes of hits, the simulation has %d", now+1, hits, s.HitBytes)
			}
			if n := onDisk(t, path); n > quota || n != f.Used() {
				t.Fatalf("%d bytes on disk, counted %d, the quota is %d", n, f.Used(), quota)
			}
		}
		run.Close()
		if p := &f.policy; p.count != 0 || p.bytes != 0 || len(p.coming) != 0 {
			t.Fatalf("%d reads are left, of %d bytes", p.count, p.bytes)
		}
	})
}

// TestCrowd: of a stretch that is read very often only the first reads are remembered, and nothing is left of them.
func TestCrowd(t *testing.T) {
	p, object := newPolicy(), NameObject("a", "", "tag", objectBytes)
	var all []*announcedRead
	for at := range int64(2 * crowd) {
		span := Span{bucketBytes - 10, bucketBytes - 1 + at%10} // in one bucket or two
		r := &announcedRead{stored: stored{object, span}, at: at}
		p.expect(r)
		all = append(all, r)
	}
	if p.count != crowd || p.next(stored{object, Span{0, bucketBytes}}) != 0 {
		t.Errorf("%d reads are remembered", p.count)
	}
	for _, r := range all {
		p.forget(r)
	}
	if p.count != 0 || p.bytes != 0 || len(p.coming) != 0 {
		t.Errorf("%d reads of %d bytes are left", p.count, p.bytes)
	}
}

// TestRangesOfHeadersThatLie: of a range as long as no file is, nothing is known, and no time is spent on it.
func TestRangesOfHeadersThatLie(t *testing.T) {
	object := NameObject("a", "", "tag", objectBytes)
	f := openFolder(t, t.TempDir(), 1<<30)
	defer f.Close()
	run, simulation := f.NewRun(0), NewSimulation(1<<30)
	defer run.Close()
	for _, span := range []Span{{0, math.MaxInt64}, {math.MaxInt64, math.MinInt64}, {-1, 0}, {5, 4}} {
		run.Expect(0, object, source.Range{Off: span.From, Len: span.len()})
		simulation.Expect(0, object, span)
		simulation.Read(object, span)
		if f.Has(object, span) || run.Full() || simulation.Known(0) || simulation.HitBytes != 0 {
			t.Errorf("%v is expected, or there", span)
		}
	}
}
