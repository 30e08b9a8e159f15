package cli

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result holds the exit code and output of a command line.
type result struct {
	code     int
	out, err string
}

// chaski runs a command line in this process.
func chaski(ctx context.Context, args ...string) result {
	var out, errs bytes.Buffer
	code := run(ctx, args, console.Env{In: strings.NewReader(""), Out: &out, Err: &errs, Version: buildVersion()})
	return result{code, out.String(), errs.String()}
}

// errorLine matches stderr after a fault: one line.
var errorLine = regexp.MustCompile(`^chaski: .+: .+: (corrupt|unsupported|limit|not found|misplaced|unavailable)\n$`)

func small(t *testing.T) []corpus.File {
	t.Helper()
	return corpus.Manifest(t, filepath.Join(corpus.Testdata(t), "raster"))
}

func testdata(t *testing.T, names ...string) string {
	t.Helper()
	return filepath.Join(append([]string{corpus.Testdata(t)}, names...)...)
}

func selection(s *corpus.Sel) string {
	if s.Slice != nil {
		return fmt.Sprintf("%d:%d", s.Slice[0], s.Slice[1])
	}
	text := fmt.Sprint(s.List)
	return strings.ReplaceAll(strings.Trim(text, "[]"), " ", ",")
}

func sameSum(t *testing.T, name string, r result, shape []int, dtype, sum string) {
	t.Helper()
	var got struct {
		Shape  []int
		DType  string
		SHA256 string
	}
	if r.code != 0 || json.Unmarshal([]byte(r.out), &got) != nil {
		t.Errorf("%s: exit %d: %s%s", name, r.code, r.out, r.err)
		return
	}
	if !slices.Equal(got.Shape, shape) || got.DType != dtype || got.SHA256 != sum {
		t.Errorf("%s: %s, want %v %s %s", name, r.out, shape, dtype, sum)
	}
}

// TestCatAgreesWithTheOriginalReaders: whole images and windows of TIFF and rumi files have the
// hashes that GDAL, tifffile and rumi-eo computed.
func TestCatAgreesWithTheOriginalReaders(t *testing.T) {
	for _, f := range small(t) {
		if f.Kind != "tiff" && f.Kind != "rumi" && f.Kind != "rumi-new" {
			continue
		}
		path := filepath.Join(f.Dir, f.Path)
		whole := chaski(t.Context(), "cat", path)
		if f.MayRefuse() && whole.code == 1 {
			if !errorLine.MatchString(whole.err) || !strings.HasSuffix(whole.err, "unsupported\n") {
				t.Errorf("%s: %s", f.Path, whole.err)
			}
			continue
		}
		sameSum(t, f.Path, whole, f.Shape, f.DType, f.SHA256)
		for _, w := range f.Reads {
			args := []string{"cat", "--layout", w.Pattern}
			for axis, s := range map[string]*corpus.Sel{"n": w.N, "b": w.B, "y": w.Y, "x": w.X} {
				if s != nil {
					args = append(args, "--"+axis, selection(s))
				}
			}
			sameSum(t, f.Path+" "+w.Pattern, chaski(t.Context(), append(args, path)...), w.Shape, f.DType, w.SHA256)
		}
	}
}

func TestCatRawAndNpyHoldTheSameBytes(t *testing.T) {
	f := slices.IndexFunc(small(t), func(f corpus.File) bool { return f.TOG && f.DType == "int8" })
	file := small(t)[f]
	path := filepath.Join(file.Dir, file.Path)
	raw, npy := chaski(t.Context(), "cat", "--format", "raw", path), chaski(t.Context(), "cat", "--format", "npy", path)
	if raw.code != 0 || corpus.SHA256([]byte(raw.out)) != file.SHA256 {
		t.Errorf("raw: exit %d, %d bytes %s", raw.code, len(raw.out), raw.err)
	}
	if npy.code != 0 || npy.out[128:] != raw.out || !strings.HasPrefix(npy.out, "\x93NUMPY\x01\x00") {
		t.Errorf("npy: exit %d, %d bytes, %s", npy.code, len(npy.out), npy.err)
	}
}

// TestIndexHex: the blob of a rumi file equals that of its writer's library, and reading with a
// blob gives the pixels of reading with the file's own header.
func TestIndexHex(t *testing.T) {
	dir := t.TempDir()
	for _, f := range small(t) {
		if f.Kind != "tiff" && f.Kind != "rumi" && f.Kind != "rumi-new" || f.MayRefuse() {
			continue
		}
		path := filepath.Join(f.Dir, f.Path)
		r := chaski(t.Context(), "index", path)
		if r.code != 0 || strings.Count(r.out, "\n") != 1 {
			t.Errorf("%s: %+v", f.Path, r)
			continue
		}
		if f.Blob != "" && strings.TrimSpace(r.out) != f.Blob {
			t.Errorf("%s: blob %s, want %s", f.Path, r.out, f.Blob)
		}
		name := filepath.Join(dir, "blob.hex")
		testfile.Write(t, name, []byte(r.out))
		sameSum(t, f.Path+" by header", chaski(t.Context(), "cat", "--header", name, path), f.Shape, f.DType, f.SHA256)
	}
}

func TestFrame(t *testing.T) {
	dir := testdata(t, "openzl")
	lines, err := os.ReadFile(filepath.Join(dir, "manifest.jsonl"))
	if err != nil {
		t.Skip(err)
	}
	type output struct {
		Type, SHA256 string
		Width, Count int
		LensSHA256   string `json:"lens_sha256"`
	}
	strs := 0
	for line := range bytes.Lines(lines) {
		var f struct {
			Kind, Path string
			Outputs    []output
		}
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		if f.Kind != "frame" {
			continue
		}
		r := chaski(t.Context(), "frame", filepath.Join(dir, f.Path))
		var got struct{ Outputs []output }
		if r.code == 1 && strings.HasSuffix(r.err, "unsupported\n") {
			continue // codecs that package openzl answers for
		}
		if r.code != 0 || json.Unmarshal([]byte(r.out), &got) != nil || len(got.Outputs) != len(f.Outputs) {
			t.Errorf("%s: %+v", f.Path, r)
			continue
		}
		for i, o := range got.Outputs {
			want := f.Outputs[i]
			if o.Type == "string" {
				strs++
				want.Width = 0
				if want.LensSHA256 == "" {
					o.LensSHA256 = ""
				}
			}
			if o != want {
				t.Errorf("%s output %d: %+v, want %+v", f.Path, i, o, want)
			}
		}
	}
	if strs == 0 {
		t.Error("no frame with strings")
	}
}

// TestMalformedFiles: every file that must be refused yields exit code 1 and one line. Files that
// may be refused yield that, or the pixels of the valid file.
func TestMalformedFiles(t *testing.T) {
	files := small(t)
	refused := 0
	for _, f := range files {
		if f.Kind != "bad" {
			continue
		}
		path := filepath.Join(f.Dir, f.Path)
		args := []string{"cat", path}
		if f.Format == "rumi-v1-blob" {
			b := testfile.Read(t, path)
			name := filepath.Join(t.TempDir(), "b.hex")
			testfile.Write(t, name, []byte(hex.EncodeToString(b)))
			args = []string{"cat", "--header", name, filepath.Join(f.Dir, f.Base)}
		}
		r := chaski(t.Context(), args...)
		switch {
		case r.code == 1 && errorLine.MatchString(r.err) && r.out == "":
			refused++
		case r.code == 0 && f.Expect == "no-crash":
		case r.code == 0 && f.Expect == "error-or-identical" && strings.Contains(r.out, f.IdenticalSHA256):
		default:
			t.Errorf("%s (%s): exit %d, %q %q, expected %s", f.Path, f.What, r.code, r.out, r.err, f.Expect)
		}
	}
	if refused < 10 {
		t.Errorf("only %d files were refused", refused)
	}
}

func TestFaultsAreOneLineAndExitOne(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		testfile.Write(t, p, []byte(text))
		return p
	}
	chip, other := testdata(t, "raster", "tog", "tog-series-0.tif"), testdata(t, "raster", "tog", "tog-int8.tif")
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	odd := write("two\nlines.tif", "no tiff")
	for _, c := range []struct {
		name, kind string
		args       []string
	}{
		{"missing file", "not found", []string{"cat", filepath.Join(dir, "none.tif")}},
		{"folder", "unsupported", []string{"cat", dir}},
		{"band", "not found", []string{"cat", "--b", "99", chip}},
		{"rows", "not found", []string{"cat", "--y", "5:4", chip}},
		{"path number", "not found", []string{"cat", "--n", "1", chip}},
		{"stack", "unsupported", []string{"cat", chip, other}},
		{"too large", "limit", []string{"cat", "--max-bytes", "10", chip}},
		{"text", "corrupt", []string{"cat", write("a.tif", "hello")}},
		{"name on two lines", "corrupt", []string{"cat", odd}},
		{"header file", "not found", []string{"cat", "--header", filepath.Join(dir, "none.hex"), chip}},
		{"header is no hex", "corrupt", []string{"cat", "--header", write("x.hex", "zz"), chip}},
		{"header is no blob", "corrupt", []string{"cat", "--header", write("y.hex", "00ff"), chip}},
		{"frame", "corrupt", []string{"frame", write("a.zl", "not a frame")}},
		{"frame of another version", "unsupported", []string{"frame", write("b.zl", "\xC0\xA5\xB1\xD7....")}},
		{"info", "unsupported", []string{"info", write("a.xyz", "hello, world")}},
		{"index", "corrupt", []string{"index", write("b.tif", "II*\x00\x08\x00\x00\x00")}},
		{"catalog of nothing", "not found", []string{"index", "--format", "parquet", filepath.Join(dir, "none")}},
		{"verify", "corrupt", []string{"verify", write("c.tif", "II*\x00\x08\x00\x00\x00")}},
		{"verify a later rumi", "unsupported", []string{"verify", write("later.rumi", "RUMI\x02\x00\x00\x00")}},
		{"verify nothing", "not found", []string{"verify", filepath.Join(dir, "none")}},
		{"output folder", "not found", []string{"stats", "-o", filepath.Join(dir, "none", "o.json"), chip}},
		{"empty dataset", "not found", []string{"bench", "load", empty}},
		{"column of a folder", "not found", []string{"stats", "--field", "image=none", dir}},
		{
			"stats file", "not found",
			[]string{"bench", "load", "--normalize", "mean_std", "--stats", filepath.Join(dir, "none.json"), dir},
		},
		{"root", "not found", []string{"serve", "--listen", "127.0.0.1:0", "--root", filepath.Join(dir, "none")}},
		{"address", "unsupported", []string{"serve", "--listen", "192.0.2.1:7447", "--log-level", "error"}},
	} {
		r := chaski(t.Context(), c.args...)
		if r.code != 1 || !errorLine.MatchString(r.err) || !strings.HasSuffix(r.err, ": "+c.kind+"\n") {
			t.Errorf("%s: exit %d %q, want 1 and one line that ends with %q", c.name, r.code, r.err, c.kind)
		}
		if c.name != "verify" && c.name != "verify a later rumi" && r.out != "" {
			t.Errorf("%s: stdout has %q", c.name, r.out)
		}
	}
}

func TestWrongUsageIsExitTwoWithAHint(t *testing.T) {
	chip := testdata(t, "raster", "tog", "tog-series-0.tif")
	for _, args := range [][]string{
		{"nothing"},
		{"help", "nothing"},
		{"help", "bench", "nothing"},
		{"cat"},
		{"cat", "--unknown", chip},
		{"cat", "--b", "a:b", chip},
		{"cat", "--b", "1,,2", chip},
		{"cat", "--y", "1,2", chip},
		{"cat", "--layout", "b (y x", chip},
		{"cat", "--layout", "b y q", chip},
		{"cat", "--layout", "y x", chip},
		{"cat", "--size", "p", chip},
		{"cat", "--size", "p=0", chip},
		{"cat", "--layout", "b (y p) x -> b y p x", "--size", "p=7", chip},
		{"cat", "--format", "tiff", chip},
		{"cat", "--threads", "0", chip},
		{"cat", "--header", "x", chip, chip},
		{"index"},
		{"index", "--format", "csv", chip},
		{"info"},
		{"frame"},
		{"frame", "a", "b"},
		{"frame", "--format", "npy", "a"},
		{"stats"},
		{"stats", "--field", "=x", "d"},
		{"stats", "--bad-samples", "guess", "d"},
		{"stats", "--format", "xml", "d"},
		{"verify"},
		{"ls", "--limit", "-5", chip},
		{"ls", "--offset", "-1", chip},
		{"bench"},
		{"bench", "decode"},
		{"bench", "load", "--window", "3y4", "d"},
		{"bench", "load", "--dtype", "float", "d"},
		{"bench", "load", "--normalize", "mean_std", "d"},
		{"serve", "here"},
		{"serve", "--listen", "nowhere"},
		{"serve", "--listen", "127.0.0.1:0", "--allow-upstream"},
		{"serve", "--listen", "unixhost:0", "--allow-upstream"},
		{"serve", "--tls-cert", "cert.pem"},
		{"serve", "--client-ca", "ca.pem"},
		{"serve", "--jwks", "jwks.json"},
		{"serve", "--jwt-audience", "chaski"},
		{"serve", "--part-bytes", "0"},
		{"serve", "--log-level", "loud"},
		{"serve", "--grace", "soon"},
		{"token"},
		{"token", ""},
		{"token", "--streams", "-1", "alice"},
		{"token", "--valid", "-1h", "alice"},
		{"token", "--root", "", "alice"},
	} {
		r := chaski(t.Context(), args...)
		if r.code != 2 || r.out != "" || !strings.HasPrefix(r.err, "chaski: ") ||
			!strings.Contains(r.err, "--help'.\n") || strings.Count(r.err, "\n") != 2 {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, r.code, r.out, r.err)
		}
	}
}

func TestInterruptEndsWithTheSignalsCode(t *testing.T) {
	chip := testdata(t, "raster", "tog", "tog-series-0.tif")
	for s, code := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(console.Interrupt{Signal: s})
		for _, args := range [][]string{{"cat", chip}, {"verify", chip}, {"bench", "decode", "--rounds", "1", chip}} {
			if r := chaski(ctx, args...); r.code != code || r.err != "chaski: interrupted\n" {
				t.Errorf("%v %v: %+v", s, args, r)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	r := chaski(t.Context(), "--version")
	if r.code != 0 || !strings.HasPrefix(r.out, "chaski ") || strings.Count(r.out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	if same := chaski(t.Context(), "version"); same.code != 0 || same.out != r.out {
		t.Errorf("%+v", same)
	}
}

func TestCompletion(t *testing.T) {
	if r := chaski(t.Context(), "completion", "bash"); r.code != 0 || !strings.Contains(r.out, "chaski") {
		t.Errorf("exit %d %q", r.code, r.err)
	}
}

// TestCompletedValues: shells offer the values that the help of a flag lists.
func TestCompletedValues(t *testing.T) {
	const word = `[a-z][a-z0-9_]*`
	list := regexp.MustCompile(`(?:^|[:,] )((?:` + word + `, )*` + word + ` or ` + word + `)(?:$| of | \(|;|,)`)
	root, seen := Command(), 0
	for _, c := range commands(root) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			m := list.FindStringSubmatch(strings.Join(strings.Fields(f.Usage), " "))
			if m == nil || f.Value.Type() == "bool" {
				return
			}
			seen++
			args := append(strings.Fields(c.CommandPath())[1:], "--"+f.Name, "")
			r := chaski(t.Context(), append([]string{"__complete"}, args...)...)
			for _, want := range regexp.MustCompile(", | or ").Split(m[1], -1) {
				if !slices.Contains(strings.Split(r.out, "\n"), want) {
					t.Errorf("%s: %q is not offered, but %q", strings.Join(args, " "), want, r.out)
				}
			}
		})
	}
	if seen < 30 {
		t.Errorf("%d flags have lists of values in their help", seen)
	}
}

// TestGroups: the help lists every command below the title of a group.
func TestGroups(t *testing.T) {
	help := chaski(t.Context(), "--help").out
	for _, c := range Command().Commands() {
		_, below, found := strings.Cut(help, "\n"+c.GroupID+"\n")
		names, _, _ := strings.Cut(below, "\n\n")
		builtin := slices.Contains([]string{"help", "completion", "version"}, c.Name())
		if builtin != (c.GroupID == "") || !builtin && (!found || !strings.Contains(names, "\n  "+c.Name()+" ") &&
			!strings.HasPrefix(names, "  "+c.Name()+" ")) {
			t.Errorf("%s: group %q has %q", c.Name(), c.GroupID, names)
		}
	}
}

// TestInfo: both output forms name the kind of the file, and the JSON has one line a path.
// TestShellsAreOfferedValues: cobra's hidden command tells shells the values of a flag that has a few.
func TestShellsAreOfferedValues(t *testing.T) {
	table := filepath.Join(t.TempDir(), "years.csv")
	testfile.Write(t, table, []byte("name,year\na,2020\n"))
	for line, want := range map[string]string{
		"cat --format ": "sha256\nnpy\nraw\n", "index --format ": "hex\nparquet\njson\n",
		"ls --bbox-rule ": "intersects\nwithin\n", "pack --columns ": "stac\nistac\nscaling\nheader\nindex\n",
		"pack --on ": "", "pack --metadata none.csv --on ": "",
		"pack --metadata " + table + " --on ": "name\nyear\n"} {
		r := chaski(t.Context(), append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if got, _, _ := strings.Cut(r.out, ":"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	chip, rumi := testdata(t, "raster", "tog", "tog-series-0.tif"), testdata(t, "raster", "rumi-v1", "qa-1b.tif")
	r := chaski(t.Context(), "info", "--json", chip, rumi, testdata(t, "raster"))
	kinds := []string{}
	for line := range strings.Lines(r.out) {
		var f struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, f.Kind)
	}
	if r.code != 0 || !slices.Equal(kinds, []string{"tiff", "rumi", "folder"}) {
		t.Errorf("exit %d, kinds %v, %s", r.code, kinds, r.err)
	}
	folder := filepath.Dir(chip)
	files, err := filepath.Glob(filepath.Join(folder, "tog-*.tif"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	all := chaski(t.Context(), append([]string{"info"}, files...)...)
	if glob := chaski(t.Context(), "info", filepath.Join(folder, "tog-*.tif")); glob != all || glob.code != 0 {
		t.Errorf("a pattern: %+v, its files: %+v", glob, all)
	}
	nothing := chaski(t.Context(), "info", filepath.Join(folder, "no*.tif"))
	if !strings.HasSuffix(nothing.err, "file: not found\n") {
		t.Errorf("a pattern of nothing: %q", nothing.err)
	}
	text := chaski(t.Context(), "info", chip, rumi)
	for _, want := range []string{"tog: true", "codec: zstd", "predictor: 2", "codecs: [", "epsg: "} {
		if !strings.Contains(text.out, want) {
			t.Errorf("no %q in\n%s", want, text.out)
		}
	}
}

// workplace makes a directory with the files that the examples name.
func workplace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	chip := testfile.Read(t, testdata(t, "raster", "tog", "tog-series-0.tif"))
	classes, err := os.ReadFile(testdata(t, "masks", "bytes.tif")) // of classes 0 to 7
	if err != nil {
		t.Fatal(err)
	}
	frame := testfile.Read(t, testdata(t, "openzl", "n8-entropy.zl"))
	zip, err := os.ReadFile(testdata(t, "containers", "taco-v2", "spec200", "codec_snappy.tacozip"))
	if err != nil {
		t.Fatal(err)
	}
	scene := testfile.Read(t, testdata(t, "demo", "coast.tif"))
	stream, err := os.ReadFile(testdata(t, "containers", "taco-v1", "stream_n2_top.taco"))
	if err != nil {
		t.Fatal(err)
	}
	coast := testfile.Read(t, testdata(t, "coast", "coast.tacozip"))
	head, err := npy.Header(chunk.Float32, []int{9, 2, 256, 256}) // of 640 by 640 pixels, at every 192
	if err != nil {
		t.Fatal(err)
	}
	windows := append(head, make([]byte, 9*2*256*256*4)...)
	stats := `{"mean":[100,100,100],"std":[10,10,10]}`
	about := `{"id": "chips", "dataset_version": "1.0.0", "description": "Chips.", "licenses": ["CC-BY-4.0"],
		"providers": [{"name": "The authors", "roles": ["producer"]}], "tasks": ["classification"]}`
	for name, b := range map[string][]byte{
		"chip.tif":               chip,
		"tokens.jsonl":           nil,
		"first.tif":              chip,
		"second.tif":             chip,
		"may.tif":                chip,
		"june.tif":               chip,
		"chips/a.tif":            chip,
		"chips/b.tif":            chip,
		"chips/sub/c.tif":        chip,
		"pairs/images/1.tif":     classes,
		"pairs/masks/1.tif":      classes,
		"masks/1.tif":            chip,
		"data.zl":                frame,
		"frames/entropy/0000.zl": frame,
		"stats.json":             []byte(stats),
		"data.tacozip":           zip,
		"coast.tacozip":          coast,
		"data.taco":              stream,
		"scene.tif":              scene,
		"predictions.npy":        windows,
		"scores.npy":             windows,
		"about.json":             []byte(about),
		"chips.yaml": []byte("source: chips/\nwindows: {kind: grid, size: 32}\nsplit: {by: hash, shares: {a: 1}}\n" +
			"collection: " + strings.Join(strings.Fields(about), " ") + "\n"),
		"chips.json": []byte(`{"source": "chips/", "statistics": false, "collection": ` + about + `}`),
		"items.json": []byte(`{"type": "FeatureCollection", "features": [{"type": "Feature", "id": "a", "properties": {},
			"assets": {"B04": {"href": "first.tif"}, "B08": {"href": "second.tif"}}}]}`),
		"labels.csv": []byte("id,label\na,1\nb,2\nc,3\n"),
		"years.csv":  []byte("id,year\n1,2024\n"),
		"files.csv":  []byte("id,path,year\na,years.csv,2024\n"),
		"spec.json": []byte(`{"version": 1, "source": "chips", "batch_size": 2, "shuffle": true, "seed": 5,
			"fields": [], "sampler": {"kind": ""}, "bad_samples": "skip"}`),
	} {
		p := filepath.Join(dir, name)
		testfile.Write(t, p, b)
	}
	for name, array := range map[string]string{
		"cube":    "dense_3d_mixed_order",
		"profile": "dense_1d_gaps",
		"series":  "dense_2d_order_rc",
	} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(testdata(t, "tiledb", "arrays", array))); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	if r := chaski(t.Context(), "index", "--format", "parquet", "-o", "train.parquet", "chips"); r.code != 0 {
		t.Fatal(r.err)
	}
	writeState(t, "spec.json", "state.json", 2)
	return dir
}

// writeState writes the state of a run of a spec after some samples of its second epoch.
func writeState(t *testing.T, spec, name string, samples int64) {
	t.Helper()
	r := chaski(t.Context(), "plan", "--json", spec)
	var p struct{ Spec string }
	if r.code != 0 || json.Unmarshal([]byte(r.out), &p) != nil {
		t.Fatal(r)
	}
	b := testfile.Read(t, spec)
	var s struct{ Seed uint64 }
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	state := fmt.Sprintf(`{"version": 1, "spec": %q, "seed": %d, "epoch": 1, "samples": %d}`, p.Spec, s.Seed, samples)
	testfile.Write(t, name, []byte(state))
}

// commands returns all commands except the built-in ones.
func commands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			list = append(list, commands(sub)...)
		}
	}
	return list
}

func TestEveryCommandIsDescribed(t *testing.T) {
	unused := sharedFlags()
	for _, c := range commands(Command()) {
		if c.Short == "" || len(c.Long) < 100 || c.Example == "" {
			t.Errorf("%s: short %q, %d bytes of description, examples %q",
				c.CommandPath(), c.Short, len(c.Long), c.Example)
		}
		for line := range strings.Lines(c.Long) {
			if len([]rune(strings.TrimRight(line, "\n"))) > 110 {
				t.Errorf("%s: a long line: %q", c.CommandPath(), line)
			}
		}
		usage := c.UsageString()
		for line := range strings.Lines(usage) {
			// The default of a flag follows its text.
			if !strings.HasPrefix(line, "  chaski ") && utf8.RuneCountInString(line) > 140 {
				t.Errorf("%s: a long line: %q", c.CommandPath(), line)
			}
		}
		flat := strings.Join(strings.Fields(usage), " ")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			text := strings.Join(strings.Fields(strings.ReplaceAll(f.Usage, "`", "")), " ")
			if text == "" || !strings.Contains(flat, text) {
				t.Errorf("%s: --%s is not described: %q", c.CommandPath(), f.Name, text)
			}
			delete(unused, f.Name)
		})
	}
	for _, kind := range spec.SamplerKinds() {
		if !strings.Contains(sharedFlags()["sampler"], kind) {
			t.Errorf("flags.txt does not name the kind of sampler %q", kind)
		}
	}
	for name := range unused {
		if name != "" {
			t.Errorf("flags.txt describes --%s, which no command has", name)
		}
	}
}

// words splits an example as a shell does: quotes, and redirections left out.
func words(line string) (args []string) {
	var word strings.Builder
	any, quote := false, rune(0)
	for _, r := range line + " " {
		switch {
		case r == quote:
			quote = 0
		case (r == '"' || r == '\'') && quote == 0:
			quote, any = r, true
		case r == ' ' && quote == 0:
			if any {
				args = append(args, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	if i := slices.IndexFunc(args, func(a string) bool { return a == ">" || a == ">>" || a == "<" }); i >= 0 {
		args = args[:i]
	}
	return args
}

// TestExamplesRun: every example in the help does what it says it does, with exit code 0.
func TestExamplesRun(t *testing.T) {
	if race.Enabled {
		t.Skip("tests of the commands run the same goroutines")
	}
	dir := workplace(t)
	ranges, err := diskcache.Open("ranges", 1<<20)
	ledger := os.DirFS(filepath.Join(corpus.Root(t), "loader", "ledger", "testdata", "ledger"))
	if err := errors.Join(err, ranges.Close(), os.CopyFS("ledger", ledger)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range commands(Command()) {
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			args := words(line)
			if args[0] != "chaski" {
				t.Errorf("%s: example %q", c.CommandPath(), line)
				continue
			}
			n++
			for i, a := range args {
				args[i] = strings.NewReplacer(
					"/tmp/chaski.sock", filepath.Join(dir, "s"),
					"127.0.0.1:9447", "127.0.0.1:0",
				).Replace(a)
			}
			switch {
			case args[1] == "serve":
				checkServe(t, args[1:])
				continue
			case slices.Contains(args, "stream"):
				if os.Getenv("CHASKI_TEST_PYTHON") == "" {
					parseOnly(t, args[1:])
					continue
				}
				args = append(args, "--python", os.Getenv("CHASKI_TEST_PYTHON"), "--engine", os.Getenv("CHASKI_BIN"),
					"--python-path", filepath.Join(corpus.Root(t), "python", "src"))
			}
			r := chaski(t.Context(), args[1:]...)
			if args[1] == "top" { // no engine runs there
				if !strings.HasSuffix(r.err, ": unavailable\n") {
					t.Errorf("%s: exit %d: %s", line, r.code, r.err)
				}
				continue
			}
			if r.code != 0 {
				t.Errorf("%s: exit %d: %s", line, r.code, r.err)
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d examples", n)
	}
	for _, f := range []string{
		"train.parquet", "all.parquet",
		"labelled.parquet", "stats.json", "fields.weights", "probability.tif", "classes.tif",
	} {
		if st, err := os.Stat(f); err != nil || st.Size() < 100 {
			t.Errorf("%s: %v", f, err)
		}
	}
	if left, _ := filepath.Glob("*.tmp"); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// parseOnly checks that the flags of a command line are known.
func parseOnly(t *testing.T, args []string) {
	t.Helper()
	c, rest, err := Command().Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Errorf("%q: %v", args, err)
	}
}

// checkServe starts a server, waits for its line, and stops it by closing its standard input or, if
// it does not read that, by a signal.
func checkServe(t *testing.T, args []string) {
	t.Helper()
	if !slices.Contains(args, "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stdin, closeIn := io.Pipe()
	out, stdout := io.Pipe()
	done := make(chan result, 1)
	go func() {
		var errs bytes.Buffer
		code := run(ctx, args, console.Env{In: stdin, Out: stdout, Err: &errs})
		stdout.Close()
		done <- result{code: code, err: errs.String()}
	}()
	var ready struct{ Listen string }
	d := json.NewDecoder(out)
	if err := d.Decode(&ready); err != nil || ready.Listen == "" || strings.HasSuffix(ready.Listen, ":0") {
		t.Errorf("%q: ready %+v, %v", args, ready, err)
	}
	if path, ok := strings.CutPrefix(ready.Listen, "unix:"); ok {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("socket: %v, %v", st, err)
		}
	}
	if slices.Contains(args, "--stop-on-eof") {
		closeIn.Close()
	} else {
		cancel(console.Interrupt{Signal: syscall.SIGTERM})
	}
	rest, _ := io.ReadAll(io.MultiReader(d.Buffered(), out))
	if r := <-done; r.code != 0 || strings.TrimSpace(string(rest)) != "" {
		t.Errorf("%q: exit %d, stdout goes on with %q\n%s", args, r.code, rest, r.err)
	}
	closeIn.Close()
}

// TestServeAddresses: an address in use is refused, and a socket without a listener is taken over.
func TestServeAddresses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(t.Context())
	out, stdout := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"serve", "--listen", "unix:" + path}, console.Env{
			In: strings.NewReader(""), Out: stdout, Err: io.Discard,
		})
	}()
	if err := json.NewDecoder(out).Decode(new(any)); err != nil {
		t.Fatal(err)
	}
	r := chaski(t.Context(), "serve", "--listen", "unix:"+path, "--log-level", "error")
	if r.code != 1 || !errorLine.MatchString(r.err) {
		t.Errorf("address in use: %+v", r)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit %d", code)
	}
	stale(t, path)
	checkServe(t, []string{"serve", "--listen", "unix:" + path, "--stop-on-eof"})
}

// stale leaves a socket without a listener.
func stale(t *testing.T, path string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Skip(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyCountsAndFindsFaults(t *testing.T) {
	dir := workplace(t)
	r := chaski(t.Context(), "verify", "chips", "data.zl", "train.parquet")
	var got struct {
		Files, Rows, Chunks, Bytes, Faulty int64
		Faults                             []string
	}
	if r.code != 0 || json.Unmarshal([]byte(r.out), &got) != nil {
		t.Fatalf("%+v", r)
	}
	// Three chips, by themselves and through the catalog, the catalog itself, and the frame.
	if got.Files != 8 || got.Rows != 3 || got.Faulty != 0 || got.Chunks%6 != 1 || got.Bytes == 0 {
		t.Errorf("%s", r.out)
	}
	// Another valid file has a name of the catalog, so its index differs from the row's.
	other := testfile.Read(t, testdata(t, "raster", "tog", "tog-int8.tif"))
	testfile.Write(t, filepath.Join(dir, "chips", "b.tif"), other)
	r = chaski(t.Context(), "verify", "train.parquet")
	if r.code != 1 || !errorLine.MatchString(r.err) || !strings.Contains(r.err, "row 1") ||
		!strings.HasSuffix(r.err, "corrupt\n") {
		t.Errorf("changed file: %+v", r)
	}
	// A truncated file.
	testfile.Write(t, filepath.Join(dir, "chips", "a.tif"), other[:len(other)/2])
	r = chaski(t.Context(), "verify", "chips")
	if json.Unmarshal([]byte(r.out), &got) != nil || r.code != 1 || got.Faulty != 1 || len(got.Faults) != 1 ||
		got.Files != 3 || !strings.Contains(r.err, "a.tif") {
		t.Errorf("cut file: %+v", r)
	}
}

// TestVerifyFollowsLinks: a directory of links is checked as a dataset reads it, and one without
// files is an error.
func TestVerifyFollowsLinks(t *testing.T) {
	dir := workplace(t)
	for _, folder := range []string{"links", "none", "all"} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"links/a.tif": "../chips/a.tif",
		"links/b.tif": filepath.Join(dir, "chips", "b.tif"),
		"all/chips":   "../chips",
	} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for folder, files := range map[string]int{"links": 2, "all": 3} {
		r := chaski(t.Context(), "verify", folder)
		if r.code != 0 || !strings.HasPrefix(r.out, fmt.Sprintf(`{"files":%d,`, files)) {
			t.Errorf("%s: %+v", folder, r)
		}
	}
	if err := os.Truncate("chips/a.tif", 300); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere.tif", "links/c.tif"); err != nil {
		t.Fatal(err)
	}
	if r := chaski(t.Context(), "verify", "links"); r.code != 1 || !strings.Contains(r.out, `"faulty":2`) {
		t.Errorf("damaged: %+v", r)
	}
	r := chaski(t.Context(), "verify", "chips", "none")
	if r.code != 1 || r.err != "chaski: none: folder: it has no files that can be verified: not found\n" {
		t.Errorf("none: %+v", r)
	}
}

// TestOutputIsCompleteOrMissing: a command that fails leaves neither its output nor a temporary
// file.
func TestOutputIsCompleteOrMissing(t *testing.T) {
	dir := workplace(t)
	testfile.Write(t, filepath.Join(dir, "chips", "d.tif"), []byte("II*\x00"))
	before, _ := os.ReadFile("train.parquet")
	if r := chaski(t.Context(), "index", "--format", "parquet", "-o", "train.parquet", "chips"); r.code != 1 {
		t.Fatalf("%+v", r)
	}
	after, _ := os.ReadFile("train.parquet")
	if left, _ := filepath.Glob("*.tmp"); left != nil || !bytes.Equal(before, after) {
		t.Errorf("left %v, the old file is changed: %t", left, !bytes.Equal(before, after))
	}
}

// TestServeStopsAtOnceWithoutStreams: --grace is a bound, not a delay.
func TestServeStopsAtOnceWithoutStreams(t *testing.T) {
	start := time.Now()
	checkServe(t, []string{"serve", "--grace", "1h"})
	if d := time.Since(start); d > 30*time.Minute {
		t.Errorf("took %v", d)
	}
}
