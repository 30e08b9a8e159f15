package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// TestPartnersOfSamples compares which samples are dropped, and the error about them, with a slow count: a sample is
// incomplete if a field that must have it has no file of its names, and so is a file that belongs to no sample.
func TestPartnersOfSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		var files []string
		var lead []string
		pairs, dates, others := map[string]bool{}, map[string]bool{}, map[string]bool{}
		rare := random.IntN(4) // 0: all files are there
		there := func() bool { return rare == 0 || random.IntN(1+2*rare) > 0 }
		for _, date := range []string{"1", "2", "3"} {
			for _, id := range []string{"a", "b"} {
				key := date + "/" + id
				if key == "1/a" || there() {
					lead, files = append(lead, key), append(files, "x/"+date+"_"+id+".tif")
				}
				if key == "1/a" || there() {
					pairs[key], files = true, append(files, "y/"+date+"_"+id+".tif")
				}
			}
			if date == "1" || there() {
				dates[date], files = true, append(files, "z/"+date+".tif")
			}
			if date == "1" || there() {
				others[date], files = true, append(files, "o/"+date+".tif")
			}
		}
		optional := random.IntN(2) == 0
		fields := []catalog.Source{
			{Field: "x", Pattern: "x/{date}_{id}.tif"}, {Field: "y", Pattern: "y/{date}_{id}.tif"},
			{Field: "z", Pattern: "z/{date}.tif"}, {Field: "o", Pattern: "o/{date}.tif", Optional: optional},
		}
		missing, used := map[string]bool{}, map[string]bool{}
		check := func(key string) {
			date, _, _ := strings.Cut(key, "/")
			used[date] = true
			if !slices.Contains(lead, key) || !pairs[key] || !dates[date] ||
				!optional && !others[date] {
				missing[key] = true
			}
		}
		for _, key := range lead {
			check(key)
		}
		for key := range pairs {
			check(key)
		}
		for date := range dates {
			if !used[date] {
				missing[date] = true
			}
		}
		for date := range others {
			if !used[date] {
				missing[date] = true
			}
		}
		left := slices.DeleteFunc(slices.Clone(lead), func(key string) bool { return missing[key] })
		what := fmt.Sprintf("round %d: %q, optional %v", round, files, optional)
		dir := folder.Of(t, files...)
		tab, err := catalog.Open(t.Context(), dir, fields, catalog.Options{})
		if err == nil {
			_ = tab.Close()
		}
		if (err != nil) != (len(missing) > 0) {
			t.Errorf("%s: missing %v: %v", what, missing, err)
		}
		if len(left) == 0 {
			continue
		}
		tab, err = catalog.Open(t.Context(), dir, fields, catalog.Options{DropIncomplete: true})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if n, _ := tab.Dropped(); tab.Len() != int64(len(left)) || n != len(missing) {
			t.Errorf("%s: %d samples, %d dropped, want %q and %v", what, tab.Len(), n, left, missing)
		}
		_ = tab.Close()
	}
}
