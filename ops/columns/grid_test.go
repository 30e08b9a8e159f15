package columns

import (
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestGridAgainstTheOriginal: testdata/majortom.csv is made by MajorTOM.latlon2rowcol of tacotoolbox 0.26.9, whose two
// labels are joined as its _compute does.
func TestGridAgainstTheOriginal(t *testing.T) {
	f, err := os.Open("testdata/majortom.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	grids := map[string]*grid{}
	for _, row := range rows[1:] {
		var v [3]float64
		for i := range v {
			if v[i], err = strconv.ParseFloat(row[i], 64); err != nil {
				t.Fatal(err)
			}
		}
		if grids[row[0]] == nil {
			grids[row[0]] = newGrid(v[0])
		}
		if got := grids[row[0]].code([2]float64{v[1], v[2]}); got != row[3] {
			t.Errorf("%v: got %s, want %s", row[:3], got, row[3])
		}
	}
}

func TestParse(t *testing.T) {
	for list, want := range map[string]string{
		"stac,what":                      `"what" must be one of`,
		"":                               `"" must be one of`,
		"stac,stac":                      "twice",
		"stac=1":                         "takes no value",
		"majortom=0.5":                   "whole kilometres",
		"majortom=":                      "whole kilometres",
		"spatialgroup=3":                 "must be one of",
		"split":                          "shares such as",
		"split=a:1/a:1":                  "shares such as",
		"split=a:-1/b:2":                 "weight",
		"stac,majortom":                  "",
		"majortom=50":                    "",
		"split=train:0.8/validation:0.2": "",
	} {
		_, err := Parse(list)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", list, err, want)
		}
	}
	for text, want := range map[string][]int64{"0,2,5": {0, 2, 5}, "m/l.tif=0-3": {0, 1, 2, 3}, "7": {7},
		"1-3,9": {1, 2, 3, 9}, "3-1": nil, "1,1": nil, "0-4000000": nil, "a": nil, "": nil} {
		if _, got, err := ParseClasses(text); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}
