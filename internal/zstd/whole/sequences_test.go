package whole

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/guard"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// drawRun draws tables, a stream, and literals, so that most runs of sequences succeed.
func drawRun(r *rand.Rand) (run, []byte) {
	t := new([3][tableMax]fseEntry)
	out := run{tables: t, rep: [3]uint64{1 + r.Uint64N(20), 1 + r.Uint64N(40), 1 + r.Uint64N(99)}}
	// Codes are small but for a few.
	most := [3]int{1 + r.IntN(24), 1 + r.IntN(12), 1 + r.IntN(40)}
	for k := range t {
		log := r.IntN(logMax[k] + 1)
		for i := range 1 << log {
			n := r.IntN(log + 1)
			code := r.IntN(min(most[k], len(values[k])))
			if r.IntN(500) == 0 {
				code = r.IntN(len(values[k]))
			}
			t[k][i] = values[k][code].entry().with(uint32(n), uint16(r.IntN(1<<log-1<<n+1)))
		}
		out.entries[k] = t[k][r.IntN(1<<log)]
	}
	count := 1 + r.IntN(300)
	bytesOf := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	out.in = bytesOf(16 + r.IntN(20*count))
	out.at, out.floor = len(out.in)-8, r.IntN(3)
	out.used = r.Uint64N(8)
	out.literals = bytesOf(r.IntN(20*count) + 1)
	out.count = count - 1
	out.out = r.IntN(5000)
	out.window = 1<<20 - uint64(r.IntN(2)*(1<<20-3000))
	return out, bytesOf(out.out + r.IntN(30*count) + 1)
}

// do runs all sequences in copies of its memory, which are at the ends of rooms, in which size of dst may be used and
// more of it written.
func (r run) do(rooms [3]*guard.Room, dst []byte, more int) (run, []byte, bool) {
	r.in = rooms[0].Put(true, r.in)
	r.buf = rooms[1].At(true, len(dst)+more)[:len(dst)]
	copy(r.buf, dst)
	r.literals = rooms[2].Put(true, r.literals)
	r.src, r.dst, r.lits = &r.in[0], &r.buf[0], &r.literals[0]
	r.outSafe, r.litSafe = min(len(dst), len(dst)+more-slack), len(r.literals)-slack
	ok := r.all()
	return r, slices.Clone(r.buf[:max(0, min(r.out, len(dst)))]), ok
}

// compareLoops decodes what a seed draws with the loop in assembly and with that in Go.
func compareLoops(t testing.TB, rooms [3]*guard.Room, seed uint64) (ok bool) {
	t.Helper()
	defer func(h bool) { hasLoop = h }(hasLoop)
	was := hasLoop
	r, dst := drawRun(rand.New(rand.NewPCG(seed, 1)))
	hasLoop = false
	a, want, ok := r.do(rooms, dst, 0)
	hasLoop = was
	for _, more := range []int{0, 16, slack} {
		b, got, okB := r.do(rooms, dst, more)
		if ok != okB {
			t.Fatalf("seed %d, %d bytes more: %v in Go, %v in assembly", seed, more, ok, okB)
		}
		if ok && (!bytes.Equal(got, want) || a.at != b.at || a.used != b.used || a.entries != b.entries ||
			a.rep != b.rep || a.lit != b.lit || a.out != b.out) {
			t.Fatalf("seed %d, %d bytes more: the loops differ after %d of %d bytes", seed, more, a.out, len(dst))
		}
	}
	return ok
}

func newRooms(t testing.TB) (r [3]*guard.Room) {
	for i := range r {
		r[i] = guard.New(t, 1<<15)
	}
	return r
}

// TestLoopsAgree: the loop in assembly does what that in Go does, and touches nothing outside its memory.
func TestLoopsAgree(t *testing.T) {
	race.SkipCovered(t)
	if !hasLoop {
		t.Skip("there is no loop in assembly here")
	}
	guard.Faults(t)
	rooms, good := newRooms(t), 0
	const cases = 3000
	for seed := range uint64(cases) {
		if compareLoops(t, rooms, seed) {
			good++
		}
	}
	if good < cases/10 || good > cases*9/10 {
		t.Errorf("%d of %d runs succeed: both kinds are needed", good, cases)
	}
}

// FuzzLoops: TestLoopsAgree with seeds of the fuzzer.
func FuzzLoops(f *testing.F) {
	f.Add(uint64(1))
	rooms := newRooms(f)
	f.Fuzz(func(t *testing.T, seed uint64) { compareLoops(t, rooms, seed) })
}

// TestTables: a table gives each code its count of states, and the states that follow a code are each reached once.
func TestTables(t *testing.T) {
	for k, log := range predefined().log {
		reached := map[fseEntry][]int{} // by the values of the entries
		for _, e := range predefined().entries[k][:1<<log] {
			next := int(e >> 16 & 0xffff)
			for i := range 1 << (e & 0xff) {
				reached[e>>32] = append(reached[e>>32], next+i)
			}
		}
		for v, states := range reached {
			slices.Sort(states)
			if len(states) != 1<<log || states[0] != 0 || len(slices.Compact(states)) != 1<<log {
				t.Errorf("table %d, value %x: %v", k, v, states)
			}
		}
	}
}
