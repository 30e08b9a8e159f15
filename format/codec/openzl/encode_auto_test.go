package openzl

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
)

// TestCostsByProcessor promises that best leaves out PivCo where its loops are slow, and that no processor with fewer
// features has lower costs.
func TestCostsByProcessor(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var samples []byte
	for range 100 * 100 { // Huffman codes suit numbers of which few are far from the mean
		samples = binary.LittleEndian.AppendUint16(samples, uint16(1000+random.NormFloat64()*4))
	}
	choice := func(loops kernel.PivcoLoops, maxCost float64) string {
		e, err := NewEncoder("best", EncodeOptions{Geozl: Geozl19, MaxCost: maxCost})
		if err != nil {
			t.Fatal(err)
		}
		e.loops = loops
		if _, err := e.Encode(nil, samples, 2, 100, 100); err != nil {
			t.Fatal(err)
		}
		return e.Graph()
	}
	if g := choice(kernel.PivcoGo, 0); strings.HasSuffix(g, "pivco") {
		t.Errorf("best chooses %s with loops in Go", g)
	}
	// 0.45 leaves bitpack (0.44) and pfor beside PivCo, which do not make such numbers as small.
	for loops, want := range map[kernel.PivcoLoops]bool{kernel.PivcoGo: false, kernel.PivcoAVX2: true,
		kernel.PivcoAVX512: true} {
		if g := choice(loops, 0.45); (g == "transpose>pivco") != want {
			t.Errorf("a cost of 0.45 chooses %s with the loops %s", g, loops)
		}
	}
	// Between the costs 0.31 and 0.36 of transpose>pivco of uint16.
	if a, b := choice(kernel.PivcoAVX2, 0.33), choice(kernel.PivcoAVX512, 0.33); a == b || b != "transpose>pivco" {
		t.Errorf("a cost of 0.33 chooses %s for AVX2 and %s for AVX-512", a, b)
	}
	for i := range candidates {
		c := &candidates[i]
		for _, width := range []int{1, 2, 4, 8} {
			var all []float64
			for loops := range kernel.PivcoAVX512 + 1 {
				all = append(all, -c.cost(width, loops))
			}
			if !slices.IsSorted(all) || (c.slow != nil) != (c.graph.end == "pivco") {
				t.Errorf("%+v: costs %v", c.graph, all)
			}
		}
	}
}
