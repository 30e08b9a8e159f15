package paste

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/tog"
)

// pyramid writes the strips of an image, and its overviews, each half as wide and high as the level before it.
type pyramid struct {
	to     *tog.Writer
	bands  int
	dtype  chunk.DType
	levels []level // the image first
}

// level is the image or an overview, and its rows that wait until there are whole rows of tiles.
type level struct {
	height, width int
	written       int      // rows
	waiting       [][]byte // by band
}

// newPyramid returns a pyramid for the image and the overviews of the options.
func newPyramid(o tog.Options, spool tog.Spool) (*pyramid, error) {
	writer, err := tog.NewWriter(o, spool)
	if err != nil {
		return nil, err
	}
	p := &pyramid{to: writer, bands: o.Shape[0], dtype: o.DType,
		levels: []level{{height: o.Shape[1], width: o.Shape[2]}}}
	for _, overview := range o.Overviews {
		p.levels = append(p.levels, level{height: overview.Height, width: overview.Width,
			waiting: make([][]byte, o.Shape[0])})
	}
	return p, nil
}

// add writes the next rows of a level, stripRows of them or its last ones, and what they complete of the levels above.
func (p *pyramid) add(i, rows int, strip []byte) error {
	p.levels[i].written += rows
	if err := p.to.Add(i, strip); err != nil || i+1 == len(p.levels) {
		return err
	}
	next, width := &p.levels[i+1], p.levels[i].width
	perRow := next.width * p.dtype.Size()
	for k := range p.bands {
		plane := strip[k*rows*width*p.dtype.Size():][:rows*width*p.dtype.Size()]
		if p.dtype == chunk.Uint8 {
			next.waiting[k] = halveClasses(next.waiting[k], plane, rows, width)
		} else {
			next.waiting[k] = halveValues(next.waiting[k], plane, rows, width)
		}
	}
	n := len(next.waiting[0]) / perRow
	if n < stripRows && next.written+n < next.height {
		return nil
	}
	var whole []byte
	for k := range p.bands {
		whole = append(whole, next.waiting[k]...)
		next.waiting[k] = next.waiting[k][:0]
	}
	return p.add(i+1, n, whole)
}

// block calls f with the pixels of each square of two by two, fewer at the right and lower edge.
func block(rows, width int, f func(pixels []int)) {
	var pixels [4]int
	for y := 0; y < rows; y += 2 {
		for x := 0; x < width; x += 2 {
			found := pixels[:0]
			for row := y; row < min(y+2, rows); row++ {
				for column := x; column < min(x+2, width); column++ {
					found = append(found, row*width+column)
				}
			}
			f(found)
		}
	}
}

// halveValues appends the mean of the numbers of each square, NaN if it has none.
func halveValues(to, plane []byte, rows, width int) []byte {
	block(rows, width, func(pixels []int) {
		sum, n := float32(0), float32(0)
		for _, i := range pixels {
			if v := math.Float32frombits(binary.LittleEndian.Uint32(plane[4*i:])); v == v {
				sum, n = sum+v, n+1
			}
		}
		mean := float32(math.NaN())
		if n > 0 {
			mean = sum / n
		}
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(mean))
	})
	return to
}

// halveClasses appends the class that most pixels of each square have, of several the one that comes first, and noClass
// where no pixel has a class.
func halveClasses(to, plane []byte, rows, width int) []byte {
	block(rows, width, func(pixels []int) {
		best, bestCount := byte(noClass), 0
		for _, i := range pixels {
			n := 0
			for _, j := range pixels {
				if plane[j] == plane[i] {
					n++
				}
			}
			if plane[i] != noClass && n > bestCount {
				best, bestCount = plane[i], n
			}
		}
		to = append(to, best)
	})
	return to
}
