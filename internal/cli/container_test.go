package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// container returns a container of testdata.
func container(t *testing.T, path string) string {
	t.Helper()
	return testdata(t, append([]string{"containers"}, strings.Split(path, "/")...)...)
}

// TestContainerCommands: exit code, and what is printed on either stream.
func TestContainerCommands(t *testing.T) {
	zip := container(t, "taco-v2/spec200/codec_snappy.tacozip")
	a, b, c := container(t, "taco-v2/spec200/concat_a.tacozip"), container(t, "taco-v2/spec200/concat_b.tacozip"), container(t, "taco-v2/current/three_level.tacozip")
	for _, x := range []struct {
		args string
		code int
		out  string // a part of standard output
		err  string // a part of standard error
	}{
		{"ls " + zip, 0, "roi_qs3\tFOLDER", ""},
		{"ls --level 1 --format json " + zip, 0, `"id":"label"`, ""},
		{"ls --level 2 " + zip, 1, "", "level2: levels 0 to 1 are there: not found"},
		{"ls --bbox=1,2,3 " + zip, 2, "", "--bbox"},
		{"ls --bbox=1,2,3,nan " + zip, 2, "", "--bbox"},
		{"ls --bbox-rule near --bbox=1,2,3,4 " + zip, 2, "", "--bbox-rule"},
		{"ls --bbox=1,2,3,4 --geometry-col nope " + zip, 1, "", `no column "nope"`},
		{"ls --bbox=1,2,3,4 --at-level 5 " + zip, 1, "", "level5"},
		{"ls --datetime 2020-02-01/2020-01-01 " + zip, 2, "", "--datetime"},
		{"ls --datetime 2015-01-01 " + zip, 0, "roi_qs0", ""},
		{"ls --sha256 " + zip, 2, "", "--leaves"},
		{"ls --columns-mode some " + zip, 2, "", "column mode"},
		{"ls " + a + " " + b, 0, "a0\tFOLDER", `chaski: warning: level0: column "only_a" is left out`},
		{"ls --where only_a=1 " + a + " " + b, 1, "", `no column "only_a"`},
		{"sql SELECT*FROM\tdata " + a + " " + b, 0, "a0", "chaski: warning: "},
		{"ls --columns-mode strict " + a + " " + b, 1, "", "not all tables have the columns"},
		{"ls " + a + " " + c, 1, "", "hierarchy"},
		{"ls " + zip + ".none", 1, "", "not found"},
		{"ls " + container(t, "taco-v2/spec200"), 1, "", "is no container"},
		{"locate " + zip + " roi_qs1 image", 0, "/vsisubfile/31736_10002,", ""},
		{"locate --format json " + zip + " #0", 0, `"ids":["image","label","extra"]`, ""},
		{"locate " + zip + " #0 #-1", 1, "", "#0 to #2"},
		{"locate " + zip + " nope", 1, "", "there are roi_qs0, roi_qs1"},
		{"locate " + zip, 2, "", "KEY"},
		{"cat " + zip + "::roi_qs1/image", 0, `"shape":[4,64,64]`, ""},
		{"cat " + zip + "::roi_qs1/extra", 1, "", "corrupt"},
		{"cat " + zip + "::roi_qs1", 1, "", "is a folder"},
		{"info " + zip, 0, "TACO 2 (ZIP)", ""},
		{"info --json " + zip, 0, `"taco_version":"2.0.0"`, ""},
		{"verify " + zip + " " + container(t, "taco-v2/spec200/three_level_dir"), 0, `"containers":2`, ""},
		{"verify " + container(t, "taco-v2/spec200/unsorted_two_level.tacozip"), 0, "offset or size of another sample", ""},
		{"verify " + container(t, "bad/tacocat_control/__TACOCAT__"), 0, `"absent":3`, ""},
		{"verify " + container(t, "bad/zip_slip.tacozip"), 1, `"faulty":1`, "corrupt"},
		{"stats --from-metadata " + zip, 1, "", "stats:mean"},
		{"stats --component x " + zip, 2, "", "--from-metadata"},
	} {
		r := chaski(t.Context(), strings.Split(x.args, " ")...)
		if r.code != x.code || !strings.Contains(r.out, x.out) || !strings.Contains(r.err, x.err) {
			t.Errorf("%s: exit %d, want %d\n%.300s\n%.300s\nwant %q, %q", x.args, r.code, x.code, r.out, r.err, x.out, x.err)
		}
		if x.code == 1 && (strings.Count(strings.TrimSpace(r.err), "\n") != 0 || !strings.HasPrefix(r.err, "chaski: ")) {
			t.Errorf("%s: not one line: %q", x.args, r.err)
		}
	}
}

// TestLeavesOfChosenSamples: conditions on samples choose whose leaves are listed, and their order.
func TestLeavesOfChosenSamples(t *testing.T) {
	zip := container(t, "taco-v2/spec200/codec_snappy.tacozip")
	r := chaski(t.Context(), "ls", "--leaves", "--sha256", "--format", "json", "--where", "rank >= 2", "--order-by", "rank desc", zip)
	if r.code != 0 {
		t.Fatal(r.err)
	}
	var got []string
	for line := range strings.Lines(r.out) {
		var l leaf
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
