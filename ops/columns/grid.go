package columns

import (
	"fmt"
	"math"
	"slices"
)

// grid is the grid of MajorTOM: rows of equal latitudes, each divided into columns of about the spacing. It is the grid
// of the extension majortom of tacotoolbox, with its codes: rows are counted from the equator up (U) and down (D),
// columns from the meridian of Greenwich to the right (R) and left (L).
type grid struct {
	kilometres float64
	lats       []float64 // southern edges of rows, ascending
	zero       int       // the row of the equator
}

// equatorKilometres is the radius of the Earth at the equator that the grid takes.
const equatorKilometres = 6378.137

// gridLatitude is where the grid ends: nearer to a pole a sample belongs to the last row.
const gridLatitude = 85

// newGrid returns the grid with a spacing.
func newGrid(kilometres float64) *grid {
	g := &grid{kilometres: kilometres}
	circle := around(int(math.Ceil(math.Pi*equatorKilometres/kilometres)), 180)
	for _, lat := range circle {
		if math.Abs(lat) <= gridLatitude {
			g.lats = append(g.lats, lat)
		}
	}
	g.zero, _ = slices.BinarySearch(g.lats, 0)
	return g
}

// around returns n equal steps of a range of degrees around 0, ascending. The original takes the steps from one end and
// the remainder of each after the range, which moves them by half of it: an odd number has none at the end.
func around(n int, degrees float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		start := -degrees/2 + float64(float64(i)*(degrees/float64(n)))
		if start < 0 {
			start += degrees
		}
		out[i] = start - degrees/2
	}
	slices.Sort(out)
	return out
}

// code returns the code of the cell of a point of longitude and latitude, "" if it is NaN.
func (g *grid) code(p [2]float64) string {
	if math.IsNaN(p[0] + p[1]) {
		return ""
	}
	row, _ := slices.BinarySearch(g.lats, p[1])
	row = min(max(row-1, 0), len(g.lats)-1)
	cells := max(1, int(math.Ceil(2*math.Pi*equatorKilometres*math.Cos(g.lats[row]*math.Pi/180)/g.kilometres)))
	lons := around(cells, 360)
	zero := 0
	for i := range lons {
		if math.Abs(lons[i]) < math.Abs(lons[zero]) {
			zero = i
		}
	}
	column, _ := slices.BinarySearch(lons, p[0])
	if column--; column < 0 {
		column = cells - 1
	}
	return fmt.Sprintf("%04dkm_%s_%s", int(g.kilometres), label(row-g.zero, "U", "D"), label(column-zero, "R", "L"))
}

// label returns the number of a row or column, with a letter for its side.
func label(i int, up, down string) string {
	if i < 0 {
		return fmt.Sprintf("%04d%s", -i, down)
	}
	return fmt.Sprintf("%04d%s", i, up)
}
