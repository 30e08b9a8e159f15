package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/container"
)

// testContainer returns a container of testdata.
func testContainer(t *testing.T, path string) string {
	t.Helper()
	return testdata(t, append([]string{"containers"}, strings.Split(path, "/")...)...)
}

// TestEmptyConditionsAreRefused: a flag that chooses samples may not be empty.
func TestEmptyConditionsAreRefused(t *testing.T) {
	zip := testdata(t, "coast", "coast.tacozip")
	for _, command := range [][]string{
		{"ls"},
		{"stats", "--field", "image=s2/img.tif"},
		{"plan", "--field", "image=s2/img.tif"},
	} {
		for _, flag := range []string{"where", "bbox", "datetime", "split"} {
			for _, empty := range []string{"", " "} {
				if command[0] == "ls" && flag == "split" {
					continue
				}
				r := chaski(t.Context(), append(command, "--"+flag, empty, zip)...)
				if r.code != 2 || !strings.Contains(r.err, "it is empty; leave the flag out instead") ||
					r.out != "" {
					t.Errorf("%s --%s: %+v", command[0], flag, r)
				}
			}
		}
	}
}

// TestContainerCommands: the commands have the expected exit code and text on both streams.
func TestContainerCommands(t *testing.T) {
	zip := testContainer(t, "taco-v2/spec200/codec_snappy.tacozip")
	a := testContainer(t, "taco-v2/spec200/concat_a.tacozip")
	b := testContainer(t, "taco-v2/spec200/concat_b.tacozip")
	c := testContainer(t, "taco-v2/current/three_level.tacozip")
	flat, stream := testContainer(t, "tortilla/flat_bytes.tortilla"), testContainer(t, "taco-v1/stream_n2_top.taco")
	for _, x := range []struct {
		args string
		code int
		out  string // a part of standard output
		err  string // a part of standard error
	}{
		{"ls " + zip, 0, "roi_qs3\tFOLDER", ""},
		{"ls --level 1 --format json " + zip, 0, `"id":"label"`, ""},
		{"ls --level 2 " + zip, 1, "", "level2: the levels are 0 to 1: not found"},
		{"ls --bbox=1,2,3 " + zip, 2, "", "--bbox"},
		{"ls --bbox=1,2,3,nan " + zip, 2, "", "--bbox"},
		{"ls --bbox=170,-10,-170,-20 " + zip, 2, "", "south"},
		{"ls --bbox=0,10,10,0 " + zip, 2, "", "south, 10, is greater than its north"},
		{"ls --bbox=500000,0,600000,10 " + zip, 2, "", "bbox_crs"},
		{"ls --bbox=1,2,3,4 --bbox-crs utm " + zip, 2, "", "EPSG code"},
		{"ls --bbox-crs 32633 " + zip, 2, "", "need --bbox"},
		{"ls --bbox-rule near --bbox=1,2,3,4 " + zip, 2, "", "--bbox-rule"},
		{"ls --bbox-rule within " + zip, 2, "", "need --bbox"},
		{"stats --geometry-col g --datetime 2020-01-01 " + zip, 2, "", "need --bbox"},
		{"plan --time-col t --bbox=1,2,3,4 " + zip, 2, "", "it needs --datetime"},
		{"ls --at-level 1 " + zip, 2, "", "it needs --bbox"},
		{"ls --bbox=1,2,3,4 --geometry-col nope " + zip, 1, "", `no column "nope"`},
		{"ls --bbox=1,2,3,4 --at-level 5 " + zip, 1, "", "level5"},
		{"ls --datetime 2020-02-01/2020-01-01 " + zip, 2, "", "--datetime"},
		{"ls --datetime 2015-01-01 " + zip, 0, "roi_qs0", ""},
		{"ls --sha256 " + zip, 2, "", "--leaves"},
		{"ls --leaves --level 1 " + zip, 2, "", "--level"},
		{"ls --columns-mode some " + zip, 2, "", "--columns-mode is"},
		{"ls " + a + " " + b, 0, "a0\tFOLDER", `chaski: warning: level0: column "only_a" is left out`},
		{"ls --where only_a=1 " + a + " " + b, 1, "", `no column "only_a"`},
		{"sql SELECT*FROM\tdata " + a + " " + b, 0, "a0", "chaski: warning: "},
		{"ls --columns-mode strict " + a + " " + b, 1, "", "not all tables have the columns"},
		{"ls " + a + " " + c, 1, "", "hierarchy"},
		{"ls " + zip + ".none", 1, "", "not found"},
		{"ls " + testContainer(t, "taco-v2/spec200"), 1, "", "is not a container"},
		{"locate " + zip + " roi_qs1 image", 0, "/vsisubfile/31736_10002,", ""},
		{"locate --format json " + zip + " #0", 0, `"ids":["image","label","extra"]`, ""},
		{"locate " + zip + " #0 #-1", 1, "", "#0 to #2"},
		{"locate " + zip + " nope", 1, "", "the ids are roi_qs0, roi_qs1"},
		{"locate " + zip, 2, "", "KEY"},
		{"cat " + zip + "::roi_qs1/image", 0, `"shape":[4,64,64]`, ""},
		{"cat " + zip + "::roi_qs1/extra", 1, "", "corrupt"},
		{"cat " + zip + "::roi_qs1", 1, "", "is a folder"},
		{"info " + zip, 0, "TACO 2 (ZIP)", ""},
		{"info --json " + zip, 0, `"taco_version":"2.0.0"`, ""},
		{"verify " + zip + " " + testContainer(t, "taco-v2/spec200/three_level_dir"), 0, `"containers":2`, ""},
		{
			"verify " + testContainer(t, "taco-v2/spec200/unsorted_two_level.tacozip"),
			0, "offset or size of another sample", "",
		},
		{"verify " + testContainer(t, "bad/tacocat_control/__TACOCAT__"), 0, `"absent":3`, ""},
		{"verify " + testContainer(t, "bad/zip_slip.tacozip"), 1, `"faulty":1`, "corrupt"},
		{"stats --from-metadata " + zip, 1, "", "stats:mean"},
		{"stats --component x " + zip, 2, "", "--from-metadata"},
		{"stats --field image=image --classes 3 " + zip, 2, "", "--classes needs --sampling"},
		{"stats --field image=image --cell 8 " + zip, 2, "", "--cell needs --sampling"},
		{"stats --field image=image --sampling --cell 0 " + zip, 2, "", "must be at least 1"},
		{"stats --field image=image --count image " + zip, 2, "", "--count needs --sampling"},
		{"stats --where id='a' " + zip, 1, "", "none of its 4 rows is selected"},
		{"stats --field image=image --where id='roi_qs0' " + zip, 0, `"samples":1`, ""},
		{"stats --field image=image --split train " + zip, 1, "", "no column \"split\""},
		{"sql --format parquet SELECT\tid\tFROM\tdata " + zip, 0, "PAR1", ""},
		{"ls " + flat, 0, "lima-0\tFILE", ""},
		{"ls --where \"tortilla:data_split\"='train' --format json " + flat, 0, `"tortilla:id":"ñandú-1"`, ""},
		{"ls --level 1 " + flat, 1, "", "level1: the levels are 0 to 0: not found"},
		{"ls " + flat + " " + stream, 1, "", "hierarchy"},
		{"ls --level 2 " + stream, 0, "roi_1/t1/t1-img\tFILE", ""},
		{"sql SELECT\tcount(*)\tFROM\tchunks " + stream, 0, "104", ""},
		{"sql SELECT\tcount(*)\tFROM\tchunks " + flat, 1, "", "not found"},
		{"locate --format json " + stream + " roi_1 t0", 0, `"ids":["t0-img"]`, ""},
		{"locate " + stream + " roi_1 t1-img::4", 0, "/vsisubfile/205456_1486,", ""},
		{"locate " + stream + " roi_1/t1/t1-img::4", 0, "/vsisubfile/205456_1486,", ""},
		{"locate " + stream + " roi_1 t1-img::64", 1, "", "not found"},
		{"cat " + stream + "::roi_1/t0/t0-img::15", 0, `"shape":[1,64,64],"dtype":"uint16"`, ""},
		{"cat " + stream + "::roi_1/t0/t0-img::99", 1, "", "not found"},
		{"cat --b B02,B01 " + stream + "::roi_1/t0/t0-img", 1, "", "names no sensor"},
		{"cat --b sentinel2msi[B03,B01] " + stream + "::roi_1/t0/t0-img", 0, `"shape":[2,128,128]`, ""},
		{"cat --b nosensor[B03] " + stream + "::roi_1/t0/t0-img", 2, "", "no sensor"},
		{"cat --b sentinel2msi[B99] " + stream + "::roi_1/t0/t0-img", 1, "", `no band "B99"`},
		{"cat --b B02 " + zip, 1, "", "a zip archive is not read as a raster: name its member"},
		{"info " + stream, 0, "chunks: 104", ""},
		{"info " + stream + "::roi_1/t0/t0-img::15", 0, "shape: [1, 64, 64]", ""},
		{"info " + zip + "::roi_qs1/image", 0, "shape: [4, 64, 64]", ""},
		{"info --json " + flat, 0, `"kind":"Tortilla 0.5"`, ""},
		{"verify " + stream + " " + flat, 0, `"containers":2`, ""},
		{"verify " + testContainer(t, "tortilla"), 0, `"containers":4`, ""},
		{"verify " + testContainer(t, "bad/stream_cycle_two.taco"), 1, `"faulty":1`, "corrupt"},
		{"stats --from-metadata --component t0-img " + stream, 0, `"fields":{"t0-img":`, ""},
		{"stats --from-metadata --component nope " + stream, 1, "", "not found"},
		{
			"stats --from-metadata --field image=t0/t0-img --field after=t1-img " + stream,
			0, `"after":{"dtype":"uint16","bands":[{"count":32768`, "",
		},
		{"stats --from-metadata --field image=t0/nope " + stream, 1, "", "not found"},
		{"stats --from-metadata --field image=* " + stream, 2, "", "has no such component"},
		{"stats --from-metadata --field a=t0-img --component t1-img " + stream, 2, "", "exclude each other"},
		{"stats --from-metadata --sampling " + stream, 2, "", "--sampling is about pixels"},
		{"stats --from-metadata --bad-samples skip " + stream, 2, "", "--bad-samples is about pixels"},
		{"info " + stream, 0, "temporal: [1420070400000, 1420070400001]", ""},
		{"stats --from-metadata --where \"tortilla:id\"='none' " + stream, 1, "", "not found"},
	} {
		r := chaski(t.Context(), strings.Split(x.args, " ")...)
		if r.code != x.code || !strings.Contains(r.out, x.out) || !strings.Contains(r.err, x.err) {
			t.Errorf("%s: exit %d, want %d\n%.300s\n%.300s\nwant %q, %q",
				x.args, r.code, x.code, r.out, r.err, x.out, x.err)
		}
		if x.code == 1 &&
			(strings.Count(strings.TrimSpace(r.err), "\n") != 0 || !strings.HasPrefix(r.err, "chaski: ")) {
			t.Errorf("%s: not one line: %q", x.args, r.err)
		}
	}
}

// TestLeavesOfChosenSamples: conditions on samples choose whose leaves are listed, and their order.
func TestLeavesOfChosenSamples(t *testing.T) {
	zip := testContainer(t, "taco-v2/spec200/codec_snappy.tacozip")
	r := chaski(t.Context(), "ls", "--leaves", "--sha256", "--format", "json", "--where", "rank >= 2", "--order-by",
		"rank desc", zip)
	if r.code != 0 {
		t.Fatal(r.err)
	}
	var got []string
	for line := range strings.Lines(r.out) {
		var l container.Leaf
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l.SHA256) != 64 || l.Offset == nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, l.Path)
	}
	var want []string
	for _, roi := range []int{3, 2} {
		for _, name := range []string{"image", "label", "extra"} {
			want = append(want, fmt.Sprintf("roi_qs%d/%s", roi, name))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestStatisticsOfMetadata: normalisers accept the output of --from-metadata, which covers the
// chosen samples only.
func TestStatisticsOfMetadata(t *testing.T) {
	path := testContainer(t, "taco-v1/stream_n2_top.taco")
	var all, one struct {
		Samples int
		Mean    []float64
		Fields  map[string]struct {
			DType string
			Bands []struct {
				Count uint64
				Mean  float64
			}
		}
	}
	for where, to := range map[string]any{"true": &all, `"tortilla:id" = 'roi_1'`: &one} {
		r := chaski(t.Context(), "stats", "--from-metadata", "--component", "t0-img", "--where", where, path)
		if r.code != 0 {
			t.Fatal(r.err)
		}
		if err := json.Unmarshal([]byte(r.out), to); err != nil {
			t.Fatal(err)
		}
	}
	// Shapes are (4, 64, 128) and (4, 128, 128).
	a, b := all.Fields["t0-img"], one.Fields["t0-img"]
	if all.Samples != 2 || one.Samples != 1 || a.DType != "uint16" || a.Bands[0].Count != 3*64*128 ||
		b.Bands[0].Count != 128*128 || len(a.Bands) != 4 {
		t.Errorf("%+v\n%+v", all, one)
	}
	if all.Mean[0] != a.Bands[0].Mean || all.Mean[0] == one.Mean[0] {
		t.Errorf("%v, %v", all.Mean, one.Mean)
	}
}
