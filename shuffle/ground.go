package shuffle

import (
	"cmp"
	"errors"
	"fmt"
	"sort"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Ground is the sampler of windows at places on the ground. The ground is one or several maps; each is a lattice of
// pixels. Its row 0 begins at y = 0 and runs down, so rows above y = 0 are negative. Cells of Cell by Cell
// pixels lie on it, the first at pixel (0, 0). Runs says which cells there are.
//
// Random windows have their middle pixel in a cell; all pixels of all cells are equally likely. Otherwise each cell
// has one window, with its corner at the cell's.
type Ground struct {
	Side    int   // of a window, in pixels
	Cell    int   // side of a cell, in pixels
	Samples int64 // random windows of an epoch; 0: one window for each cell
	Runs    []CellRun
	// Scene returns the row that a window is named by: its first scene. It must be a pure function.
	Scene func(Place) int64

	ends []int64 // cells up to and including each run
}

// CellRun is N cells of one row of cells.
type CellRun struct {
	Map  int32 // number of the map
	Y, X int32 // the first cell
	N    int32
}

// Place is where a window begins: its first pixel on a map.
type Place struct {
	Map  int   `json:"map"`
	Y, X int64 // row and column
}

// maxCells bounds the cells of a run and their places, so 2^24 pixels of each fit into an int64.
const maxCells = 1 << 30

// compile checks the sampler, and counts the cells.
func (g *Ground) compile(lf *leafDataset) (height, width int, err error) {
	if lf.Series != nil { // a window has many rows
		return 0, 0, errors.New("ground windows of sequences")
	}
	if err = cmp.Or(g.count(), lf.each(0)); err == nil {
		lf.n = g.windows()
	}
	return g.Side, g.Side, err
}

func (g *Ground) window(*leafDataset, Draw, int, int, *Weights) (Box, bool) {
	panic("shuffle: Plan.Window of windows on the ground, which Plan.Place gives")
}

// count checks the fields, and counts the cells.
func (g *Ground) count() error {
	if !sides(g.Side, g.Cell) || g.Samples < 0 || g.Samples > MaxSamples || g.Scene == nil {
		return fmt.Errorf("ground windows of %d pixels, in cells of %d, %d an epoch", g.Side, g.Cell, g.Samples)
	}
	total := int64(0)
	g.ends = make([]int64, len(g.Runs))
	for i, cellRun := range g.Runs {
		if cellRun.N < 1 || cellRun.Map < 0 || cellRun.N > maxCells || max(cellRun.Y, -cellRun.Y, cellRun.X,
			-cellRun.X) > maxCells {
			return fmt.Errorf("ground windows: run %d of cells is %v", i, cellRun)
		}
		total += int64(cellRun.N)
		g.ends[i] = total
	}
	if total == 0 {
		return errors.New("ground windows: there are no cells")
	}
	return nil
}

// Cells returns the number of cells.
func (g *Ground) Cells() int64 {
	cells := int64(0)
	for _, r := range g.Runs {
		cells += int64(r.N)
	}
	return cells
}

// windows returns the windows of an epoch.
func (g *Ground) windows() int64 {
	if g.Samples > 0 {
		return g.Samples
	}
	return g.ends[len(g.ends)-1]
}

// at returns cell number i, which is below Cells.
func (g *Ground) at(i int64) (r CellRun, x int64) {
	run := sort.Search(len(g.ends), func(run int) bool { return g.ends[run] > i })
	r = g.Runs[run]
	return r, int64(r.X) + int64(r.N) - (g.ends[run] - i)
}

// place returns the window of a draw.
func (g *Ground) place(d *Draw) Place {
	if g.Samples == 0 {
		run, x := g.at(d.Sample)
		return Place{int(run.Map), int64(run.Y) * int64(g.Cell), x * int64(g.Cell)}
	}
	hash := splitmix.Hash(d.Seed, domainGround, d.Epoch, uint64(d.Position))
	cellRun, x := g.at(splitmix.Below64(splitmix.Further(hash, 0), g.ends[len(g.ends)-1]))
	half := int64(g.Side / 2)
	return Place{
		Map: int(cellRun.Map),
		Y:   int64(cellRun.Y)*int64(g.Cell) + splitmix.Below64(splitmix.Further(hash, 1), int64(g.Cell)) - half,
		X:   x*int64(g.Cell) + splitmix.Below64(splitmix.Further(hash, 2), int64(g.Cell)) - half,
	}
}

// Place returns where the window of a draw of a dataset with the sampler Ground begins.
func (pl *Plan) Place(d *Draw) Place { return pl.leaves[d.Dataset].Sampler.Kind.(*Ground).place(d) }
