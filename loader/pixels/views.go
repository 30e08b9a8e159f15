package pixels

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/einops/pattern"
)

// SetViews gives the tensor an axis v for n windows of each sample. The steps of the field must be set.
func (r *Raster) SetViews(n int) (err error) {
	layout, err := r.viewLayout()
	if err != nil {
		return err
	}
	r.Views, r.Sizes = n, maps.Clone(r.Sizes)
	if r.Sizes == nil {
		r.Sizes = map[string]int{}
	}
	r.Sizes["v"] = n
	r.LayoutPattern, err = pattern.Parse(layout)
	return err
}

var (
	viewSteps  = regexp.MustCompile(`\bv\s+t\b`)
	layoutName = regexp.MustCompile(`\w+`)
)

// viewLayout returns a layout with an axis v for package einops, for which v and t are factors of one axis.
func (r *Raster) viewLayout() (string, error) {
	layout := r.Layout
	if r.byDefault {
		layout = "n v" + strings.TrimPrefix(layout, "n")
	}
	left, right, twoSided := strings.Cut(layout, "->")
	if !twoSided {
		right = left
	}
	names := layoutName.FindAllString(right, -1)
	if !slices.Contains(names, "v") {
		return "", fmt.Errorf("layout is %q: with several windows of a sample it needs the axis v, as in \"n v b y x\"",
			layout)
	}
	if !twoSided {
		canonical := []string{"n", "v", "t", "b", "y", "x"}
		absent := func(name string) bool { return !slices.Contains(names, name) }
		left = strings.Join(slices.DeleteFunc(canonical, absent), " ")
	}
	if r.timed() {
		left = viewSteps.ReplaceAllString(left, "(v t)")
	}
	return left + " -> " + right, nil
}
