package columns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/shuffle"
)

// Columns that level 0 alone has.
const (
	gridCode  = "majortom:code"
	splitName = "split"
)

// Extensions are the names that Parse accepts, in the order of the help.
var Extensions = []string{"stac", "istac", "stats", "scaling", "header", "index", "rumi", "majortom", "split"}

// defaultKilometres is the spacing of the grid of majortom where none is given; tacotoolbox has the same.
const defaultKilometres = 100

// Parse reads a list of extensions, such as "stac,stats,majortom=50". Errors have no kind.
func Parse(list string) (*Compute, error) {
	compute := &Compute{names: map[string]bool{}}
	for item := range strings.SplitSeq(list, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(item), "=")
		if !slices.Contains(Extensions, name) {
			return nil, fmt.Errorf("%q must be one of %s", name, strings.Join(Extensions, ", "))
		}
		if compute.names[name] {
			return nil, fmt.Errorf("%q is given twice", name)
		}
		compute.names[name] = true
		if err := compute.set(name, value, given); err != nil {
			return nil, err
		}
	}
	return compute, nil
}

// set sets the value of an extension.
func (c *Compute) set(name, value string, given bool) (err error) {
	switch {
	case name == "majortom":
		c.kilometres = defaultKilometres
		if given {
			c.kilometres, err = strconv.ParseFloat(value, 64)
		}
		// A code has the spacing in whole kilometres, of four digits, and four digits for a row and a column: rows and
		// columns of 5 km are 4,008 to each side of the zero.
		if err != nil || c.kilometres != float64(int(c.kilometres)) || c.kilometres < 5 || c.kilometres > 9999 {
			return fmt.Errorf("majortom=%s: it must be whole kilometres from 5 to 9999", value)
		}
	case name == splitName:
		c.split, err = parseShares(value)
		return err
	case given:
		return fmt.Errorf("%s takes no value, and has %q", name, value)
	}
	return nil
}

// parseShares reads shares such as "train:0.8/validation:0.2".
func parseShares(text string) (s shuffle.Split, err error) {
	var names []string
	var weights []float64
	for part := range strings.SplitSeq(text, "/") {
		name, share, _ := strings.Cut(part, ":")
		weight, err := strconv.ParseFloat(share, 64)
		if err != nil || name == "" || slices.Contains(names, name) {
			return s, fmt.Errorf("split=%s: it must be shares such as train:0.8/validation:0.2", text)
		}
		names, weights = append(names, name), append(weights, weight)
	}
	if s, err = shuffle.NewSplit(0, names, weights); err == nil {
		err = s.Check()
	}
	return s, err
}

// ParseClasses reads which classes a raster has, for Compute.Classes: "0,1,2" or "0-9" of samples that are files, and
// "label.tif=0-9" of the files label.tif below the samples. Errors have no kind.
func ParseClasses(text string) (path string, classes []int64, err error) {
	if i := strings.LastIndex(text, "="); i >= 0 {
		path, text = text[:i], text[i+1:]
	}
	bad := func() (string, []int64, error) {
		return "", nil, fmt.Errorf("%q is not a list of classes such as 0,1,2 or label.tif=0-9", text)
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		lo, err := strconv.ParseInt(first, 10, 32)
		hi := lo
		if err == nil && ranged {
			hi, err = strconv.ParseInt(last, 10, 32)
		}
		if err != nil || hi < lo {
			return bad()
		}
		if hi-lo >= maxClasses-int64(len(classes)) {
			return "", nil, fmt.Errorf("%q has more than %d classes", text, maxClasses)
		}
		for v := lo; v <= hi; v++ {
			if slices.Contains(classes, v) {
				return "", nil, fmt.Errorf("%q has class %d twice", text, v)
			}
			classes = append(classes, v)
		}
	}
	return path, classes, nil
}

// maxClasses bounds the classes of a raster: each row of geotiff:stats has a number for each.
const maxClasses = 1024
