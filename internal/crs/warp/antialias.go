package warp

import (
	"bytes"
	"math"

	"github.com/chaski-eo/chaski/fault"
)

// phases is how many places between two pixels have weights of their own: a place is rounded by 1/512
// pixel at most.
const phases = 256

// maxRadius is the largest radius of a tent in pixels, for which a table of weights has 4 MB. A
// larger radius needs an overview.
const maxRadius = 1024

// tentKernel resamples with a triangle around each place, as wide as the coarser of both grids needs.
type tentKernel[T Number] struct {
	src  *Plane[T]
	x, y axisWeights
}

// axisWeights has the weights along an axis: of the pixels 1-reach to reach from the one at a place.
type axisWeights struct {
	reach   int
	weights []float64 // 2·reach for each phase from 0 to phases
	sums    []float64
}

func newSide(radius float64) axisWeights {
	axis := axisWeights{reach: int(math.Ceil(radius))}
	for phase := range phases + 1 {
		sum := 0.0
		for pixel := 1 - axis.reach; pixel <= axis.reach; pixel++ {
			weight := max(0, 1-math.Abs(float64(pixel)-float64(phase)/phases)/radius)
			axis.weights = append(axis.weights, weight)
			sum += weight
		}
		axis.sums = append(axis.sums, sum)
	}
	return axis
}

// at returns the first pixel and the weights for a place, which counts from the centre of the first
// pixel, and their sum.
func (s *axisWeights) at(x int64) (first int64, weights []float64, sum float64) {
	phase := int(uint32(x)>>23+1) >> 1 // rounded to phases
	width := 2 * s.reach
	return x>>32 + 1 - int64(s.reach), s.weights[phase*width:][:width:width], s.sums[phase]
}

func newTent[T Number](m *Mapping, src *Plane[T]) (*tentKernel[T], error) {
	if m.radiusX > maxRadius || m.radiusY > maxRadius {
		return nil, fault.New(fault.Limit, "window",
			"antialias of %.0f by %.0f pixels to one: at most %d, read an overview", m.radiusY, m.radiusX, maxRadius)
	}
	return &tentKernel[T]{src: src, x: newSide(m.radiusX), y: newSide(m.radiusY)}, nil
}

func (t *tentKernel[T]) row(r *run, out []float32, valid []byte) {
	height, width := int64(t.src.Box.Y1-t.src.Box.Y0), int64(t.src.Box.X1-t.src.Box.X0)
	center := sourcePlace{r.from.x - half, r.from.y - half}
	for i := range out {
		x, weightsX, sumX := t.x.at(center.x)
		y, weightsY, sumY := t.y.at(center.y)
		every := x >= 0 && y >= 0 && x+int64(len(weightsX)) <= width && y+int64(len(weightsY)) <= height
		sum := 0.0
		for row := 0; every && row < len(weightsY); row++ {
			if start := (y+int64(row))*width + x; weightsY[row] != 0 {
				every = t.src.Valid == nil || bytes.IndexByte(t.src.Valid[start:][:len(weightsX)], 0) < 0
				sum += float64(weightsY[row] * dot(weightsX, t.src.Pix[start:]))
			}
		}
		// A sum of NaN is taken again pixel by pixel, because a pixel of NaN may be one without a weight.
		if every && sum == sum {
			out[i], valid[i] = float32(sum/float64(sumX*sumY)), 1
		} else {
			out[i], valid[i] = t.valid(x, y, weightsX, weightsY)
		}
		center.x, center.y = center.x+r.step.x, center.y+r.step.y
	}
}

// dot returns the sum of pixels times weights.
func dot[T Number](weights []float64, pix []T) (sum float64) {
	pix = pix[:len(weights)]
	for j, weight := range weights {
		// The conversion prevents a fused multiply-add, whose last bits would differ between machines.
		sum += float64(weight * float64(pix[j]))
	}
	return sum
}

// valid is row for one place at an edge, or with missing pixels around.
func (t *tentKernel[T]) valid(x, y int64, wx, wy []float64) (float32, byte) {
	height, width := int64(t.src.Box.Y1-t.src.Box.Y0), int64(t.src.Box.X1-t.src.Box.X0)
	var sum, weight, total float64
	for j, weightY := range wy {
		row := y + int64(j)
		if weightY == 0 || row < 0 || row >= height {
			continue
		}
		for k, weightX := range wx {
			col := x + int64(k)
			if weightX == 0 || col < 0 || col >= width {
				continue
			}
			total += float64(weightX * weightY)
			if pos := row*width + col; t.src.Valid == nil || t.src.Valid[pos] != 0 {
				weight += float64(weightX * weightY)
				sum += float64(float64(weightX*weightY) * float64(t.src.Pix[pos]))
			}
		}
	}
	if !(2*weight >= total && weight > 0) {
		return 0, 0
	}
	return float32(sum / weight), 1
}
