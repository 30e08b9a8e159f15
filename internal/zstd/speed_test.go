//go:build datadog && linux

package zstd_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"testing"

	ddzstd "github.com/DataDog/zstd"
	"golang.org/x/sys/unix"

	"github.com/chaski-eo/chaski/internal/zstd"
	"github.com/chaski-eo/chaski/internal/zstd/whole"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// bands is imagery of uint16, band by band.
type bands struct {
	count, height, width int
	pixels               []uint16
}

// readBands reads an array of NumPy with the axes (band, y, x) and the dtype uint16.
func readBands(t testing.TB, path string) bands {
	t.Helper()
	b := testfile.Read(t, path)
	head := regexp.MustCompile(`'descr': '<u2', 'fortran_order': False, 'shape': \((\d+), (\d+), (\d+)\)`)
	m := head.FindSubmatch(b[:min(128, len(b))])
	if m == nil {
		t.Fatalf("%s is not an array of uint16 with three axes", path)
	}
	var shape [3]int
	for i := range shape {
		shape[i], _ = strconv.Atoi(string(m[1+i]))
	}
	out := bands{shape[0], shape[1], shape[2], make([]uint16, shape[0]*shape[1]*shape[2])}
	data := b[10+int(binary.LittleEndian.Uint16(b[8:])):]
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, out.pixels); err != nil {
		t.Fatal(err)
	}
	return out
}

// bytes8 scales the first three bands to uint8 as codecs.py does: the darkest and brightest percent are cut.
func (b bands) bytes8() bands {
	out := bands{3, b.height, b.width, slices.Clone(b.pixels[:3*b.height*b.width])}
	sorted := slices.Sorted(slices.Values(out.pixels))
	low, high := int(sorted[len(sorted)/100]), int(sorted[len(sorted)*99/100])
	for i, v := range out.pixels {
		out.pixels[i] = uint16(min(max((int(v)-low)*255/(high-low), 0), 255))
	}
	return out
}

// tiles cuts the bands into tiles of a side, each of one band, and takes differences along x as predictor 2 of TIFF
// does.
func (b bands) tiles(side, sampleBytes int) (all [][]byte) {
	for band := range b.count {
		for y0 := 0; y0+side <= b.height; y0 += side {
			for x0 := 0; x0+side <= b.width; x0 += side {
				tile := make([]byte, 0, side*side*sampleBytes)
				for y := range side {
					last := uint16(0)
					for _, v := range b.pixels[(band*b.height+y0+y)*b.width+x0:][:side] {
						tile = append(tile, byte(v-last))
						if sampleBytes == 2 {
							tile = append(tile, byte((v-last)>>8))
						}
						last = v
					}
				}
				all = append(all, tile)
			}
		}
	}
	return all
}

// TestSpeedAgainstLibzstd decodes the tiles of real imagery with package whole and with libzstd, in turns of a few
// milliseconds on one thread, and prints MB a second and their ratio. CHASKI_IMAGERY is an array of NumPy: uint16 of
// (band, y, x).
func TestSpeedAgainstLibzstd(t *testing.T) {
	path := os.Getenv("CHASKI_IMAGERY")
	if path == "" {
		t.Skip("CHASKI_IMAGERY is not set")
	}
	rounds := 40
	if s := os.Getenv("CHASKI_ROUNDS"); s != "" {
		rounds, _ = strconv.Atoi(s)
	}
	b := readBands(t, path)
	for _, set := range []struct {
		name  string
		tiles [][]byte
	}{
		{"uint16 32 KiB", b.tiles(128, 2)},
		{"uint16 128 KiB", b.tiles(256, 2)},
		{"uint16 512 KiB", b.tiles(512, 2)},
		{"uint8 16 KiB", b.bytes8().tiles(128, 1)},
		{"uint8 64 KiB", b.bytes8().tiles(256, 1)},
	} {
		t.Run(set.name, func(t *testing.T) { compareSpeed(t, set.name, set.tiles, rounds) })
	}
}

func compareSpeed(t *testing.T, name string, tiles [][]byte, rounds int) {
	frames, stored, size := make([][]byte, len(tiles)), 0, len(tiles[0])
	ctx := ddzstd.NewCtx()
	for i, tile := range tiles {
		frame, err := ctx.CompressLevel(nil, tile, 13) // as the TIFFs of bench/peers
		if err != nil {
			t.Fatal(err)
		}
		frames[i] = frame
		stored += len(frame)
	}
	dst := make([]byte, size+slack)
	var own whole.Decoder
	library := zstd.New()
	decoders := []func(src []byte) bool{
		func(src []byte) bool { return own.Decode(dst, size, src) },
		func(src []byte) bool { return library.Decompress(dst[:size], src) == nil },
	}
	const slice = 256 << 10 // bytes of content between two looks at the clock
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var least [2]map[int]float64 // by decoder and the first tile of a slice
	for k := range least {
		least[k] = map[int]float64{}
	}
	var ratios []float64
	for round := range rounds {
		for from := 0; from < len(frames); from += max(1, slice/size) {
			var took [2]float64
			for turn := range decoders {
				k := (round + turn) % len(decoders) // the second one finds the frames in a nearer cache
				decode, start := decoders[k], threadTime(t)
				for i := from; i < min(len(frames), from+max(1, slice/size)); i++ {
					if !decode(frames[i]) || dst[size/2] != tiles[i][size/2] {
						t.Fatalf("%s: tile %d is not decoded", name, i)
					}
				}
				took[k] = threadTime(t) - start
				if old, ok := least[k][from]; !ok || took[k] < old {
					least[k][from] = took[k]
				}
			}
			ratios = append(ratios, took[1]/took[0])
		}
	}
	var sum [2]float64
	for k := range sum {
		for _, s := range least[k] {
			sum[k] += s
		}
	}
	slices.Sort(ratios)
	rate := func(s float64) float64 { return float64(size*len(tiles)) / 1e6 / s }
	fmt.Printf("%-14s | stored %.2f | own %5.0f MB/s | libzstd %5.0f MB/s | least times %.2f | "+
		"median %.2f (%.2f – %.2f)\n",
		name, float64(stored)/float64(size*len(tiles)), rate(sum[0]), rate(sum[1]), sum[1]/sum[0],
		ratios[len(ratios)/2], ratios[len(ratios)/20], ratios[len(ratios)*19/20])
}

// threadTime returns the seconds of processor time of this thread, which other processes do not lengthen.
func threadTime(t testing.TB) float64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return float64(now.Nano()) / 1e9
}
