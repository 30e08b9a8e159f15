package pixels

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestErrorsOfLongNames: a file may have names of megabytes, and errors about them stay readable: they say what else
// is wrong.
func TestErrorsOfLongNames(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	_, missing := PickBands([]string{long, "B04"}, []string{"B08"})
	_, twice := PickBands([]string{long, "B04", long}, []string{long})
	r, o := &Raster{names: []string{"B04", long}, namesOf: "a.tif"}, &Raster{names: []string{long}, namesOf: "b.tif"}
	for say, err := range map[string]error{
		`no band "B08"; there are ["xxx`: missing,
		`"B04"`:                          twice,
		`in a.tif it is "B04"`:           SameNames([]string{long}, "a.tif", []string{"B04"}),
		`is "B04", in a.tif`:             SameNames([]string{"B04"}, "a.tif", []string{long}),
		"is band 1 of a.tif, and band 0": r.SameOrder(o),
	} {
		if err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), say) || fault.KindOf(err) == 0 {
			t.Errorf("%.500v, want %q", err, say)
		}
	}
}
