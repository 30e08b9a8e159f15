package kinds

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/source"
)

func togs() convert.Options {
	return convert.Options{Format: convert.TOG, Tile: 64, Level: 3, MaxBytes: 1 << 30}
}

// tree returns the hashes of all files below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		sum := sha256.Sum256(b)
		rel, _ := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// convertedDirectly is what convert.File makes of the chips, by name.
func convertedDirectly(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := &source.Files{}
	defer files.Close()
	out := map[string]string{}
	o := togs()
	o.Workers, o.Opener = 1, files
	// Each chip is a link, which WalkDir names and does not follow.
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, "bad.tif") {
			return err
		}
		var b bytes.Buffer
		if _, err := convert.File(t.Context(), &b, p, o); err != nil {
			return err
		}
		sum := sha256.Sum256(b.Bytes())
		rel, _ := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)] = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAnySplitConverts: any number of shards, in any order, some of them twice, leaves the files that convert.File
// makes, and no others; the report has their hashes, and is the same for every split.
func TestAnySplitConverts(t *testing.T) {
	dir := chips(t, 11)
	src := filepath.Join(dir, "chips")
	write(t, filepath.Join(src, "b", "bad.tif"), []byte("no TIFF"))
	want := convertedDirectly(t, src)
	into := filepath.Join(src, "new") // below the source: a later plan leaves it out
	r := rand.New(rand.NewPCG(1, 2))
	report := ""
	for _, shards := range []int{1, 4, 99} {
		k := &Convert{Paths: []string{src}, Into: into, Overwrite: true, SkipBad: true, Options: togs()}
		j := plan(t, k, shards)
		anyOrder(t, r, j)
		got, o, err := merge(t, j, "")
		if err != nil {
			t.Fatal(err)
		}
		if report == "" {
			report = string(got)
		}
		if string(got) != report {
			t.Errorf("%d shards: %s\nwant %s", shards, got, report)
		}
		if notes := strings.Join(o.Notes, "\n"); !strings.HasPrefix(notes, "skipped: ") ||
			!strings.Contains(notes, "bad.tif") {
			t.Errorf("%d shards: notes %q", shards, o.Notes)
		}
	}
	have, listed := tree(t, into), 0
	for _, line := range strings.Split(strings.TrimSpace(report), "\n") {
		var c Converted
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Error != "" {
			continue
		}
		listed++
		if c.SHA256 != want[c.File] || have[c.File] != want[c.File] {
			t.Errorf("%s: the report has %.8s, the file %.8s, want %.8s", c.File, c.SHA256, have[c.File], want[c.File])
		}
	}
	if listed != len(want) || len(have) != len(want) {
		t.Errorf("%d files listed, %d there, want %d", listed, len(have), len(want))
	}
}

// TestConvertIntoAbove: sources in a directory that lies below the new files are converted, beside others.
func TestConvertIntoAbove(t *testing.T) {
	dir := chips(t, 4)
	src := filepath.Join(dir, "chips")
	for _, paths := range [][]string{{filepath.Join(src, "b")}, {filepath.Join(src, "b", "*.tif")}} {
		k := &Convert{Paths: append(paths, filepath.Join(src, "a", "0.tif")), Into: dir, Overwrite: true,
			Options: togs()}
		j := plan(t, k, 2)
		run(t, j, 0, false)
		run(t, j, 1, false)
		if _, _, err := merge(t, j, ""); err != nil {
			t.Fatal(err)
		}
		for name, want := range convertedDirectly(t, filepath.Join(src, "b")) {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || fmt.Sprintf("%x", sha256.Sum256(b)) != want {
				t.Errorf("%s of %s: %v", name, paths, err)
			}
		}
	}
	into := &Convert{Paths: []string{src}, Into: src, Overwrite: true, Options: togs()}
	_, err := job.Plan(t.Context(), t.TempDir(), into, job.PlanOptions{}, options())
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(fault.Line(err), "replace itself") {
		t.Errorf("files that would replace themselves: %v", err)
	}
}

// TestConvertRefusals: two sources of one file, files that are there, a source that would replace itself, a source that
// changed, and a file that is gone at the merge.
func TestConvertRefusals(t *testing.T) {
	dir := chips(t, 4)
	src := filepath.Join(dir, "chips")
	planErr := func(k *Convert) error {
		_, err := job.Plan(t.Context(), t.TempDir(), k, job.PlanOptions{}, options())
		return err
	}
	into := filepath.Join(dir, "new")
	twice := &Convert{Paths: []string{src, filepath.Join(src, "*", "*.tif"), filepath.Join(src, "a", "*.tif"),
		filepath.Join(src, "a.b", "..", "a", "0.tif")}, Into: into, Options: togs()}
	if err := planErr(twice); err != nil {
		t.Errorf("one file listed twice: %v", err)
	}
	write(t, filepath.Join(src, "b", "0.rumi"), nil)
	write(t, filepath.Join(src, "b", "0.tif"), nil)
	if err := planErr(&Convert{Paths: []string{src}, Into: into, Options: togs()}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("two sources of one file: %v", err)
	}
	_ = os.Remove(filepath.Join(src, "b", "0.rumi"))
	for _, overwrite := range []bool{false, true} {
		k := &Convert{Paths: []string{filepath.Join(src, "b", "3.tif")}, Into: filepath.Join(src, "b"),
			Overwrite: overwrite, Options: togs()}
		if err := planErr(k); !errors.Is(err, fault.Unsupported) && !errors.Is(err, fault.NotFound) {
			t.Errorf("a file that is there, overwrite %t: %v", overwrite, err)
		}
	}
	_ = os.Remove(filepath.Join(src, "b", "0.tif"))
	k := &Convert{Paths: []string{filepath.Join(src, "b")}, Into: into, Options: togs()}
	j := plan(t, k, 1)
	other, err := filepath.Abs("../../testdata/extras/points.tif")
	chip := filepath.Join(src, "b", "3.tif")
	if err = errors.Join(err, os.Remove(chip), os.Symlink(other, chip)); err != nil {
		t.Fatal(err)
	}
	err = j.Run(t.Context(), 0, job.RunOptions{Resource: options()})
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(fault.Line(err), "changed since") {
		t.Errorf("a source that changed: %v", err)
	}
	j = plan(t, k, 1)
	run(t, j, 0, false)
	if err := os.Truncate(filepath.Join(into, "3.tif"), 9); err != nil {
		t.Fatal(err)
	}
	if _, _, err := merge(t, j, ""); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a file that was cut: %v", err)
	}
	_ = os.Remove(filepath.Join(into, "3.tif"))
	if _, _, err := merge(t, j, ""); !errors.Is(err, fault.NotFound) {
		t.Errorf("a file that is gone: %v", err)
	}
}

// FuzzConverted: any result of a shard is refused with a kind, or is a list of files below the directory.
func FuzzConverted(f *testing.F) {
	good := `{"file":"a/b.tif","source":"/x/b.tif","bytes":3,"sha256":"` + strings.Repeat("ab", 32) + `"}` + "\n"
	f.Add([]byte(`{"written":1,"skipped":0}`), []byte(good))
	f.Add([]byte(`{"written":0,"skipped":1}`), []byte(`{"file":"a.tif","source":"x","error":"no"}`))
	f.Add([]byte(`{"written":1,"skipped":0}`), []byte(strings.Replace(good, "a/b", "../b", 1)))
	f.Fuzz(func(t *testing.T, tally, lines []byte) {
		p := &job.Part{Shard: job.Shard{Count: 1}, Tally: tally,
			Body: io.NewSectionReader(bytes.NewReader(lines), 0, int64(len(lines)))}
		err := eachConverted(p, func(c *Converted) error {
			if !strings.HasPrefix(filepath.Join("/root", c.File), "/root/") {
				t.Errorf("%q leaves the directory", c.File)
			}
			return nil
		})
		if err != nil && fault.KindOf(err) == 0 {
			t.Errorf("no kind: %v", err)
		}
	})
}
