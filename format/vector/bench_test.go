package vector

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/chaski-eo/chaski/format/vector/rasterize"
	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/source/openers"
)

// BenchmarkLayer opens the file that CHASKI_SHAPES names, of a million polygons in 100 by 100 km at x 400 to 500 km and
// y 4500 to 4600 km (testdata/million.py writes it), and draws windows of 1 km: about 100 polygons each, on 256 by 256
// pixels. It tells the processor's time, too, because other work lets the clock say anything.
func BenchmarkLayer(b *testing.B) {
	path := os.Getenv("CHASKI_SHAPES")
	if path == "" {
		b.Skip("CHASKI_SHAPES names no file")
	}
	files := &openers.Files{}
	open := func(b *testing.B) *Layer {
		l, err := Open(b.Context(), files, path, Options{Column: "class"})
		if err != nil {
			b.Fatal(err)
		}
		return l
	}
	b.Run("open", func(b *testing.B) {
		from := cputime.Used()
		for b.Loop() {
			_ = open(b).Close()
		}
		b.ReportMetric(float64((cputime.Used()-from).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
	})
	b.Run("window", func(b *testing.B) {
		l := open(b)
		defer l.Close()
		rnd := rand.New(rand.NewPCG(1, 1))
		mask := make([]byte, 256*256)
		read := func() (n int) {
			clear(mask)
			x, y := 400e3+rnd.Float64()*99e3, 4500e3+rnd.Float64()*99e3
			for _, row := range l.Search(x, y, x+1000, y+1000, 0) {
				shape, err := l.Shape(b.Context(), row)
				if err != nil {
					b.Fatal(err)
				}
				g := rasterize.Grid{Transform: [6]float64{x, 1000. / 256, 0, y + 1000, 0, -1000. / 256}, Height: 256,
					Width: 256}
				g.Spans(shape, func(y, x0, x1 int) {
					for x := x0; x < x1; x++ {
						mask[y*g.Width+x] = byte(l.Values.Int(int(row)))
					}
				})
				n++
			}
			return n
		}
		for range 500 { // pages come into memory
			read()
		}
		n, from := 0, cputime.Used()
		for b.Loop() {
			n += read()
		}
		b.ReportMetric(float64((cputime.Used()-from).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
		b.ReportMetric(float64(n)/float64(b.N), "shapes/op")
	})
}
