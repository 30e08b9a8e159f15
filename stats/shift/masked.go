package shift

import (
	"cmp"
	"math"
	"slices"
)

const (
	// rivals is how many of the highest peaks are checked against each other.
	rivals = 8
	// steps is how far in pixels the two measures may find the same peak apart.
	steps = 4
	// agree is the distance in pixels up to which the two measures say the same shift: each is exact to a pixel.
	agree = 1.5
	// unshifted and repeated are how much of the correlation of a shift there may be without a shift, and at another
	// peak: periodic ground correlates with itself a period away. Of 475 scenes shifted by more than aside pixels, 6
	// have more, of smooth waves half. Shifts of up to aside pixels are shorter than periods.
	unshifted = 0.5
	repeated  = 0.8
	// minValid is the share of the pixels that both rasters must have: 800 of 128 by 128.
	minValid = 0.05
	// parts is the number of blocks along each axis. Each block is left out once.
	parts = 4
)

// overlap is the normalised correlation of two rasters at one shift, as the sum of what each block adds.
type overlap [parts * parts]float64

// sum returns the correlation. With one block left out, it is the correlation of the others but for a factor.
func (o *overlap) sum(without int) float64 {
	sum := 0.0
	for i, v := range o {
		if i != without {
			sum += v
		}
	}
	return sum
}

// all is the block of overlap.sum that leaves none out.
const all = -1

// masked returns the normalised correlation, at a shift, of the pixels that are valid in both rasters.
func (e *Estimator) masked(y, x int) (o overlap) {
	tensor, b := &e.firstEdges, &e.otherEdges
	var energyA, energyB float64
	n := 0
	left, cols := max(0, -x), tensor.w-abs(x)
	for row := max(0, -y); row < min(tensor.h, tensor.h-y); row++ {
		blocks := o[row*parts/tensor.h*parts:]
		i, j := row*tensor.w+left, (row+y)*tensor.w+left+x
		edgesA, edgesB := tensor.sum[i:i+cols], b.sum[j:j+cols]
		validA, validB := tensor.valid[i:i+cols], b.valid[j:j+cols]
		for k, p := range edgesA {
			if !validA[k] || !validB[k] {
				continue
			}
			q := edgesB[k]
			blocks[(left+k)*parts/tensor.w] += real(p)*real(q) + imag(p)*imag(q)
			energyA += real(p)*real(p) + imag(p)*imag(p)
			energyB += real(q)*real(q) + imag(q)*imag(q)
			n++
		}
	}
	energy := math.Sqrt(energyA * energyB)
	if float64(n) < minValid*float64(tensor.h*tensor.w) || !(energy > 0) {
		return overlap{}
	}
	for i := range o {
		o[i] /= energy
	}
	return o
}

// check measures a shift again by the pixels that both rasters have. It returns no confidence if they say another
// shift, or none as well.
func (e *Estimator) check(s Shift) Shift {
	y, x := 0, 0
	none := e.masked(0, 0)
	best := none
	peaks := e.peaks()
	sums := make([]float64, len(peaks))
	for i, p := range peaks {
		o := e.masked(p[0], p[1])
		if sums[i] = o.sum(all); sums[i] > best.sum(all) {
			y, x, best = p[0], p[1], o
		}
	}
	var around [3][3]overlap
	for range steps {
		up, left := 0, 0
		for i := range 9 {
			o := &around[i/3][i%3]
			if *o = e.masked(y+i/3-1, x+i%3-1); o.sum(all) > best.sum(all) {
				up, left, best = i/3-1, i%3-1, *o
			}
		}
		if up == 0 && left == 0 {
			break
		}
		y, x = y+up, x+left
	}
	dy, dx := top(&around, all)
	again := Shift{Y: float64(y) + dy, X: float64(x) + dx, Radius: radius(&around), Confidence: s.Confidence}
	least := none.sum(all) / unshifted
	for i, p := range peaks {
		if abs(p[0]-y) > aside || abs(p[1]-x) > aside {
			least = max(least, sums[i]/repeated)
		}
	}
	periodic := again.Length() > aside && best.sum(all) < least
	if periodic || !(math.Hypot(again.Y-s.Y, again.X-s.X) <= agree) {
		again.Confidence = 0
	}
	return again
}

// peaks returns the highest peaks of the correlation.
func (e *Estimator) peaks() (highest [][2]int) {
	shifts(e.firstEdges.h, e.firstEdges.w, func(y, x int) {
		c := e.at(y, x)
		if !(c > 0) {
			return
		}
		for i := range 9 {
			if e.at(y+i/3-1, x+i%3-1) > c {
				return
			}
		}
		highest = append(highest, [2]int{y, x})
	})
	slices.SortFunc(highest, func(a, b [2]int) int { return cmp.Compare(e.at(b[0], b[1]), e.at(a[0], a[1])) })
	return highest[:min(len(highest), rivals)]
}

// top returns where the correlation around a pixel is highest, with one block left out.
func top(around *[3][3]overlap, without int) (y, x float64) {
	middle := around[1][1].sum(without)
	return between(around[0][1].sum(without), middle, around[2][1].sum(without)),
		between(around[1][0].sum(without), middle, around[1][2].sum(without))
}

// radius returns the standard error of the top by the jackknife (B. Efron, C. Stein, The jackknife estimate of
// variance, The Annals of Statistics 9, 1981): by how far it moves when each block is left out. It is infinite for one
// block.
func radius(around *[3][3]overlap) float64 {
	y, x := top(around, all)
	sum, n := 0.0, 0.0
	for i, v := range around[1][1] {
		if v != 0 {
			dy, dx := top(around, i)
			sum, n = sum+(dy-y)*(dy-y)+(dx-x)*(dx-x), n+1
		}
	}
	if n < 2 {
		return math.Inf(1)
	}
	return math.Sqrt(sum * (n - 1) / n)
}
