package openzl_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/internal/cputime"
)

// sampled returns a tile of 16-bit samples as samples of another width: bytes of the upper 12 bits, or floats.
func sampled(tile []byte, width int) []byte {
	var out []byte
	for i := 0; i < len(tile); i += 2 {
		v := binary.LittleEndian.Uint16(tile[i:])
		switch width {
		case 1:
			out = append(out, byte(min(v>>4, 255)))
		case 2:
			out = append(out, tile[i:i+2]...)
		case 4:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)/10000))
		default:
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(v)/10000))
		}
	}
	return out
}

// TestSpeedsOfGraphs measures the table of costs of package openzl: it prints how long each graph decodes, as a
// multiple of what delta>zstd takes. CHASKI_OPENZL_COSTS asks for it: "all", or names of graphs. All graphs take
// turns, and of each the turn with the least processor time counts. GODEBUG=cpu.avx512vbmi2=off measures what a
// processor without AVX-512 VBMI2 takes, and GODEBUG=cpu.avx2=off,cpu.avx512vbmi2=off one without AVX2.
func TestSpeedsOfGraphs(t *testing.T) {
	only := os.Getenv("CHASKI_OPENZL_COSTS")
	if only == "" {
		t.Skip("CHASKI_OPENZL_COSTS is not set")
	}
	t.Logf("the loops of PivCo are %s", kernel.PivcoHere())
	tiles := images()
	if tiles == nil {
		tiles = append(tiles, raster(rand.New(rand.NewPCG(1, 2)), 2, 256, 256, 1))
	}
	d := openzl.NewDecoder(openzl.Options{Custom: geozl.Codecs()})
	for _, width := range []int{1, 2, 4, 8} {
		frames, best, size := map[string][][]byte{}, map[string]time.Duration{}, map[string]int{}
		for _, graph := range graphs {
			e, err := openzl.NewEncoder(graph, openzl.EncodeOptions{Geozl: openzl.Geozl19})
			if err != nil || graph == "auto" || graph == "best" ||
				only != "all" && graph != "delta>zstd" && !slices.Contains(strings.Fields(only), graph) {
				continue
			}
			for _, tile := range tiles {
				f, err := e.Encode(nil, sampled(tile, width), width, 256, 256)
				if err != nil {
					t.Fatal(err)
				}
				frames[graph] = append(frames[graph], f)
				size[graph] += len(f)
			}
		}
		dst := make([]byte, 256*256*width)
		for range 15 {
			for graph, list := range frames {
				start := cputime.Used()
				for _, f := range list {
					if err := d.Decompress(dst, f, width); err != nil {
						t.Fatal(err)
					}
				}
				if used := cputime.Used() - start; best[graph] == 0 || used < best[graph] {
					best[graph] = used
				}
			}
		}
		var rows []string
		for graph, used := range best {
			rows = append(rows, fmt.Sprintf("%5.2f of delta>zstd  %6.0f MB/s  ratio %.2f  %s",
				float64(used)/float64(best["delta>zstd"]), float64(len(dst)*len(tiles))/1e6/used.Seconds(),
				float64(len(dst)*len(tiles))/float64(size[graph]), graph))
		}
		slices.Sort(rows)
		t.Logf("%d bytes\n%s", width, strings.Join(rows, "\n"))
	}
}
