package cli

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// storedZIP returns a ZIP with files that are stored.
func storedZIP(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = f.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// named is a dataset of four chips, and GDAL's names for them.
type named struct {
	dir   string
	names []string // of the chips 0 to 3
	web   *netsim.Server
}

// namedChips makes a directory and a web server with chips as files and in ZIPs.
func namedChips(t *testing.T) named {
	t.Helper()
	files := chips()
	files["c.zip"] = storedZIP(t, map[string][]byte{"x/1.tif": files["1.tif"], "x/2.tif": files["2.tif"]})
	web, _, bases := remotes(t, files)
	dir := t.TempDir()
	for name, b := range files {
		testfile.Write(t, filepath.Join(dir, name), b)
	}
	return named{dir, []string{
		"/vsicurl/" + bases[0] + "0.tif",
		"/vsizip/" + dir + "/c.zip/x/1.tif",
		"/vsizip//vsicurl/" + bases[0] + "c.zip/x/2.tif",
		fmt.Sprintf("/vsisubfile/0_%d,/vsis3/bucket/data/3.tif", len(files["3.tif"])),
	}, web}
}

// TestNamesOfGDAL: commands take GDAL's names for the files that they name.
func TestNamesOfGDAL(t *testing.T) {
	data := namedChips(t)
	out := t.TempDir()
	for i, name := range data.names {
		file := filepath.Join(data.dir, fmt.Sprintf("%d.tif", i))
		a, b := chaski(t.Context(), "cat", file), chaski(t.Context(), "cat", name)
		if a.code != 0 || a.out != b.out {
			t.Errorf("cat %s: %d %s", name, b.code, b.err)
		}
		a, b = chaski(t.Context(), "info", file), chaski(t.Context(), "info", name)
		if a.code != 0 || strings.TrimPrefix(a.out, "path: "+file) != strings.TrimPrefix(b.out, "path: "+name) {
			t.Errorf("info %s: %+v", name, b)
		}
		a, b = chaski(t.Context(), "stats", file), chaski(t.Context(), "stats", name)
		if a.code != 0 || a.out != b.out {
			t.Errorf("stats %s: %d %s", name, b.code, b.err)
		}
		if r := chaski(t.Context(), "verify", name); r.code != 0 || !strings.Contains(r.out, `"files":1`) {
			t.Errorf("verify %s: %+v", name, r)
		}
		a = chaski(t.Context(), "extract", "-o", out+"/e.tif", name)
		want, _ := os.ReadFile(file)
		if got, _ := os.ReadFile(out + "/e.tif"); a.code != 0 || !bytes.Equal(got, want) {
			t.Errorf("extract %s: %d %s", name, a.code, a.err)
		}
		converted := filepath.Join(out, fmt.Sprintf("%d.rumi", i))
		if r := chaski(t.Context(), "convert", "-o", converted, name); r.code != 0 {
			t.Errorf("convert %s: %s", name, r.err)
		}
	}
	want := chaski(t.Context(), "stats", data.dir+"/[12].tif")
	for _, dir := range []string{"/vsizip/" + data.dir + "/c.zip",
		"/vsizip/{/vsicurl/" + data.web.URL + "/data/c.zip}/x"} {
		if r := chaski(t.Context(), "stats", dir); want.code != 0 || r.out != want.out {
			t.Errorf("stats %s: %d %s", dir, r.code, r.err)
		}
	}
	r := chaski(t.Context(), "info", "/vsigzip/a.tif.gz")
	if r.code != 1 || !strings.Contains(r.err, "/vsigzip/a.tif.gz") || !strings.HasSuffix(r.err, "unsupported\n") {
		t.Errorf("%+v", r)
	}
	secret := strings.Replace(data.web.URL, "://", "://user:secret@", 1)
	r = chaski(t.Context(), "info", "/vsicurl/"+secret+"/none?sig=secret")
	if r.code != 1 || strings.Contains(r.err, "secret") || !strings.HasSuffix(r.err, "not found\n") {
		t.Errorf("%+v", r)
	}
}

// tablesOf writes tables with the names of the chips, CSV and STAC items, and a catalog of each.
func tablesOf(t *testing.T, names []string) (table string, catalogs []string) {
	t.Helper()
	dir := t.TempDir()
	csv, items := "id,image\n", []any{}
	for i, name := range names {
		id := fmt.Sprint(i)
		csv += id + `,"` + name + "\"\n"
		item := map[string]any{"type": "Feature", "stac_version": "1.0.0", "id": id, "properties": map[string]any{},
			"assets": map[string]any{"image": map[string]any{"href": name}}}
		items = append(items, item)
	}
	for name, value := range map[string]any{"list.csv": csv, "items.json": items} {
		b, err := json.Marshal(map[string]any{"type": "FeatureCollection", "features": value})
		if text, ok := value.(string); ok {
			b = []byte(text)
		}
		file := filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(file, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		catalog := filepath.Join(dir, "of-"+name+".parquet")
		r := chaski(t.Context(), "index", "--format", "parquet", "--field", "image=image", "-o", catalog, file)
		if r.code != 0 {
			t.Fatalf("%s: %+v", name, r)
		}
		catalogs = append(catalogs, catalog)
	}
	return filepath.Join(dir, "list.csv"), catalogs
}

// TestTablesWithNamesOfGDAL: tables, STAC items and catalogs with GDAL's names are the same dataset as one with paths.
func TestTablesWithNamesOfGDAL(t *testing.T) {
	data := namedChips(t)
	paths := make([]string, len(data.names))
	for i := range paths {
		paths[i] = filepath.Join(data.dir, fmt.Sprintf("%d.tif", i))
	}
	_, plain := tablesOf(t, paths)
	want, _, err := batches(t, plain[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	table, catalogs := tablesOf(t, data.names)
	for _, file := range catalogs {
		got, _, err := batches(t, file, nil)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d: %v", file, len(got), len(want), err)
		}
		roots := []string{"/vsis3/bucket", data.dir, filepath.Dir(file), data.web.URL}
		if got, _, err = batches(t, file, roots); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s below roots: %d bytes, want %d: %v", file, len(got), len(want), err)
		}
		_, _, err = batches(t, file, roots[1:])
		if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "outside") {
			t.Errorf("%s: %v", file, err)
		}
		if r := chaski(t.Context(), "verify", file); r.code != 0 {
			t.Errorf("%+v", r)
		}
	}
	a := chaski(t.Context(), "stats", plain[0])
	if r := chaski(t.Context(), "stats", "--field", "image", table); a.code != 0 || r.out != a.out {
		t.Errorf("stats %s: %d %s", table, r.code, r.err)
	}
}

// TestContainersByNamesOfGDAL packs a table with GDAL's names, and reads the container by GDAL's names.
func TestContainersByNamesOfGDAL(t *testing.T) {
	data := namedChips(t)
	dir := t.TempDir()
	table := "id,path\n"
	for i, name := range data.names {
		table += fmt.Sprintf("s%d/img.tif,\"%s\"\n", i, name)
	}
	for name, text := range map[string]string{"t.csv": table, "c.yaml": "id: x\ndataset_version: '1'\n" +
		"description: d\nlicenses: [CC0-1.0]\nproviders: [{name: n, roles: [producer]}]\ntasks: [regression]\n"} {
		testfile.Write(t, filepath.Join(dir, name), []byte(text))
	}
	file := filepath.Join(dir, "p.tacozip")
	if r := chaski(t.Context(), "pack", "--collection", dir+"/c.yaml", "-o", file, dir+"/t.csv"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	b := testfile.Read(t, file)
	data.web.Put("/data/p.tacozip", b)
	name := "/vsicurl/" + data.web.URL + "/data/p.tacozip"
	for _, args := range [][]string{{"ls", name}, {"sql", "SELECT id FROM data", name}, {"verify", name}} {
		local := append(args[:len(args)-1:len(args)-1], file)
		r, want := chaski(t.Context(), args...), chaski(t.Context(), local...)
		if r.code != 0 || strings.ReplaceAll(r.out, name, file) != want.out {
			t.Errorf("%s: %+v, want %+v", args, r, want)
		}
	}
	want := chaski(t.Context(), "cat", data.dir+"/1.tif")
	place := chaski(t.Context(), "locate", name, "s1/img.tif")
	for _, n := range []string{name + "::s1/img.tif", strings.TrimSpace(place.out)} {
		if r := chaski(t.Context(), "cat", n); place.code != 0 || r.code != 0 || r.out != want.out {
			t.Errorf("%s: %d %s %s", n, r.code, r.err, place.err)
		}
	}
}
