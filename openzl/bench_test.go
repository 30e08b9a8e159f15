package openzl

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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
			d := NewDecoder(Options{})
			var frames, dsts [][]byte
			var widths []int
			total := 0
			for _, f := range files {
				frame := read(b, f)
				outs, err := d.Decode(frame)
				if err != nil {
					b.Skip(err)
				}
				frames, widths = append(frames, frame), append(widths, outs[0].Width)
				dsts = append(dsts, make([]byte, len(outs[0].Data)))
				total += len(outs[0].Data)
			}
			b.SetBytes(int64(total))
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				for i, f := range frames {
					if err := d.Decompress(dsts[i], f, widths[i]); err != nil {
						b.Fatal(err)
					}
				}
				best = min(best, time.Since(start))
			}
			// On a machine with other work the best pass says more than the mean.
			b.ReportMetric(float64(total)/1e6/best.Seconds(), "best-MB/s")
		})
	}
}
