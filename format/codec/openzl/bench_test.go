package openzl_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/codec/openzl"
)

// BenchmarkDecompress decodes frames below $CHASKI_OPENZL_SPEED, one folder a class.
func BenchmarkDecompress(b *testing.B) {
	root := os.Getenv("CHASKI_OPENZL_SPEED")
	dirs, _ := filepath.Glob(filepath.Join(root, "*"))
	if root == "" || len(dirs) == 0 {
		b.Skip("CHASKI_OPENZL_SPEED names no folder of frames")
	}
	for _, dir := range dirs {
		b.Run(filepath.Base(dir), func(b *testing.B) {
			files, _ := filepath.Glob(filepath.Join(dir, "*.zl"))
			d := openzl.NewDecoder(openzl.Options{Custom: geozl.Codecs()})
			var frames, dsts [][]byte
			var widths []int
			total := 0
			for _, f := range files {
				frame, err := os.ReadFile(f)
				if err != nil {
					b.Fatal(err)
				}
				outs, err := d.Decode(frame)
				if err != nil {
					b.Skip(err)
				}
				frames, widths = append(frames, frame), append(widths, outs[0].Width)
				dsts = append(dsts, make([]byte, len(outs[0].Data)))
				total += len(outs[0].Data)
			}
			b.SetBytes(int64(total))
			b.ReportAllocs()
			best := make([]time.Duration, len(frames))
			for b.Loop() {
				for i, f := range frames {
					start := time.Now()
					if err := d.Decompress(dsts[i], f, widths[i]); err != nil {
						b.Fatal(err)
					}
					if t := time.Since(start); best[i] == 0 || t < best[i] {
						best[i] = t
					}
				}
			}
			// The best pass of each frame counts, because other work on the machine distorts the
			// mean.
			var sum time.Duration
			for _, t := range best {
				sum += t
			}
			b.ReportMetric(float64(total)/1e6/sum.Seconds(), "best-MB/s")
		})
	}
}
