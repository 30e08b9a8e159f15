package cli

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestFilesBesideRemoteRasters: a mask and PAM in a bucket count as they do in a directory, also in catalogs.
func TestFilesBesideRemoteRasters(t *testing.T) {
	files, dir := map[string][]byte{}, t.TempDir()
	for _, name := range []string{"mask.tif", "mask.tif.msk", "pam.tif", "pam.tif.aux.xml"} {
		b := testfile.Read(t, filepath.Join("../../../testdata/beside", name))
		files["d/"+name] = b
		testfile.Write(t, filepath.Join(dir, name), b)
	}
	_, _, bases := remotes(t, files)
	statistics := func(source string) any {
		t.Helper()
		r := chaski(t.Context(), "stats", source)
		var out struct{ Fields map[string]any }
		if err := json.Unmarshal([]byte(r.out), &out); r.code != 0 || err != nil {
			t.Fatalf("%s: %+v, %v", source, r, err)
		}
		return out.Fields
	}
	for _, glob := range []string{"/mask*.tif", "/p*.tif"} {
		source, local := bases[1]+"d"+glob, dir+glob
		want := statistics(local)
		t.Setenv("CHASKI_BESIDE", "no")
		if reflect.DeepEqual(statistics(local), want) {
			t.Fatalf("%s: the files beside the rasters say nothing", local)
		}
		t.Setenv("CHASKI_BESIDE", "")
		catalog := filepath.Join(t.TempDir(), "c.parquet")
		for _, resume := range [][]string{nil, {"--resume"}} {
			index := append([]string{"index", source, "-o", catalog, "--format", "parquet"}, resume...)
			if r := chaski(t.Context(), index...); r.code != 0 {
				t.Fatalf("%v: %+v", index, r)
			}
			for _, name := range []string{source, catalog} {
				if got := statistics(name); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %v, local %v", name, got, want)
				}
			}
		}
	}
}
