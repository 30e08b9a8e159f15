// Package scenes says what windows on the ground are made of. Package loader/ground finds out where they may lie and
// which scenes each of them sees, where a program imports it.
package scenes

import (
	"io"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Scene is a raster that windows may see. Name is for errors.
type Scene struct {
	Row   int64
	Name  string
	Place catalog.Place
	// Dataset is the number of the dataset that the scene is of.
	Dataset int
	// Step is the same for the scenes of one step of a sequence; negative for a step of its own. Rank orders steps by
	// the first scene of each; equal ones stay in the order of the scenes.
	Step int64
	Rank int
	// Beside says that the scene's dataset has no steps of sequences: fields take its scenes by the scenes of others.
	Beside bool
	// Time is in microseconds, if the scene is Timed. It is for Nearest only.
	Time  int64
	Timed bool
}

// Area is polygons in a CRS.
type Area struct {
	CRS   *crs.CRS
	Parts []orb.Polygon
}

// Options say which windows there are.
type Options struct {
	Side       int     // of a window in pixels
	Resolution float64 // side of a pixel in metres
	Stride     int     // of a grid in pixels; 0 for random windows
	Edge       bool    // random windows may reach past the scenes
	Samples    int64   // random windows of an epoch; 0: as many as fit side by side
	CRS        string  // "utm", or "EPSG:" and a code
	Within     []Area  // middles of random windows lie in each of them, and windows of a grid touch each
	Part       *Part   // windows lie in it with all their pixels; nil for all
	Length     int     // of sequences; 0 without steps
	All        int     // windows lie where each of so many datasets has scenes; 0: where any of them has
	// Bad decides what becomes of a scene whose place is not known well enough, or that the maps cannot show: New goes
	// on without it, or fails with the error that Bad returns. Default: New fails with err.
	Bad func(s *Scene, err error) error
}

// UTM is the value of Options.CRS that makes a map of each zone of UTM.
const UTM = "utm"

// Part is a part of a split of the ground: squares of longitude and latitude belong to it, and others to other parts.
// Windows of two parts do not overlap, and have a margin between them.
type Part struct {
	Size   float64 // side of a square in degrees
	Margin float64 // metres of the map
	// Has reports whether the square that holds a point belongs to the part. Longitudes are -180 to 180.
	Has func(lon, lat float64) bool
}

// Step is a step of the sequence of a window.
type Step struct {
	Rows  []int64 // of its scenes, the preferred ones first
	First int32   // the number of its first scene
}

// Set is where windows may lie, and the scenes that they see.
type Set struct {
	Ground *shuffle.Ground
	// Past counts the scenes that reach past the latitudes of UTM: windows end there.
	Past int
	Finder
}

// Finder finds windows, and the scenes that they see. It is safe for concurrent use.
type Finder interface {
	// View returns the finder of further windows of each sample, of side pixels of size metres: span pixels of the
	// first window.
	View(side int, size float64, span int) Finder
	// Window returns where the window at a place lies, Place the same as assets say it.
	Window(p shuffle.Place) warp.Raster
	Place(p shuffle.Place) *catalog.Place
	// Rows appends the rows of the scenes that the window at a place sees, the preferred ones first.
	Rows(rows []int64, p shuffle.Place) []int64
	// WithPixels returns the rows of the scenes, out of some, that have a pixel of the window at a place. As with
	// Steps, where no scene at all has one, it returns all of them, which share a side with the window.
	WithPixels(p shuffle.Place, rows []int64) []int64
	// Steps returns the steps of the sequence in the window at a place, at most Options.Length, made of scenes that are
	// not Beside. A scene that lies beside the window and shares a side with it has none of its pixels. It is a step
	// only if all scenes are like this.
	Steps(p shuffle.Place) []Step
	// At returns the rows of the scenes of a step of the first window of a sample that a view of it at a place sees.
	At(p shuffle.Place, step *Step) []int64
	// SameStep returns those rows that has reports true for, of the scenes that the window at a place sees and that
	// have the value of one of its steps.
	SameStep(p shuffle.Place, step *Step, has func(row int64) bool) []int64
	// Nearest returns, of the scenes that the window at a place sees and whose rows has reports true for, the row of
	// the one whose time is nearest to the time of the first scene of one of its steps, at most within microseconds
	// from it, and the rows of the scenes of the same step. Of several that are as near the preferred one counts.
	Nearest(p shuffle.Place, step *Step, has func(row int64) bool, within int64) []int64
	// Digest writes the bytes that identify the windows and their scenes.
	Digest(w io.Writer)
}

// New returns the set of some scenes, as ground.New does. Without that package it is an error: fault.Unsupported.
var New = func(scenes []Scene, o Options) (*Set, error) {
	return nil, fault.NotImported("sampler", "places windows on the ground", "loader/ground")
}
