package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// given returns the flags of a command line with an output.
func given(output string, args ...string) (*Flags, error) {
	f, fl := &Flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(fl)
	if err := fl.Parse(args); err != nil {
		return nil, err
	}
	return f, f.Check(fl, output)
}

// shard does a share of work whose body is the numbers of its items, and reports whether it wrote a part.
func shard(t *testing.T, w Work, k, n int) (wrote bool) {
	t.Helper()
	f, err := given(w.Output, "--shard", fmt.Sprintf("%d/%d", k, n))
	if err != nil {
		t.Fatal(err)
	}
	err = f.Do(t.Context(), w, func(s Share, body io.Writer) (any, error) {
		wrote = true
		for i := range s.Count {
			fmt.Fprintln(body, s.First+i)
		}
		return s.Count, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return wrote
}

// mergeOf joins the parts of n shards, and returns their bodies.
func mergeOf(t *testing.T, w Work, n int) (all string, err error) {
	t.Helper()
	f, err := given(w.Output, "--merge", fmt.Sprint(n))
	if err != nil {
		t.Fatal(err)
	}
	err = f.Do(t.Context(), w, nil, func(parts iter.Seq2[*Part, error]) error {
		for p, err := range parts {
			if err != nil {
				return err
			}
			b, err := io.ReadAll(p.Body)
			if err != nil {
				return err
			}
			count, err := ParseTally[int64](p)
			if err != nil || count != p.Count || bytes.Count(b, []byte("\n")) != int(count) {
				return fmt.Errorf("%d of %d lines, tally %d: %w", bytes.Count(b, []byte("\n")), p.Count, count, err)
			}
			all += string(b)
		}
		return nil
	})
	return all, err
}

// TestShares: whatever the numbers of items and shards, the parts have all items in their order, and a merge leaves
// one file beside the output.
func TestShares(t *testing.T) {
	for _, items := range []int64{1, 2, 7, 1000} {
		for _, n := range []int{1, 2, 3, 9} {
			dir := t.TempDir()
			w := Work{Output: filepath.Join(dir, "out") + "/", Settings: "a", Inputs: "b", Items: items}
			for k := n - 1; k >= 0; k-- {
				shard(t, w, k, n)
				if shard(t, w, k, n) != (w.share(k, n).Count > 0) {
					continue
				}
				if w.share(k, n).Count > 0 {
					t.Errorf("shard %d of %d was done twice", k, n)
				}
			}
			all, err := mergeOf(t, w, n)
			lines := strings.Fields(all)
			if err != nil || len(lines) != int(items) || lines[items-1] != fmt.Sprint(items-1) {
				t.Errorf("%d items in %d shards: %q, %v", items, n, all, err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "out.merged" {
				t.Errorf("%v are left, %v", left, err)
			}
		}
	}
	w := Work{Items: 1<<62 + 5}
	if s := w.share(99_999, 100_000); s.First+s.Count != w.Items {
		t.Errorf("the last share is %+v of %d items", s, w.Items)
	}
}

// TestOtherWork: a merge names the shards without a part, and refuses one that was made with other settings or of other
// inputs, which its shard makes anew.
func TestOtherWork(t *testing.T) {
	w := Work{Output: filepath.Join(t.TempDir(), "out"), Settings: "a", Inputs: "b", Items: 40}
	shard(t, w, 2, 40)
	_, err := mergeOf(t, w, 40)
	want := "out: parts: 39 of 40 shards have none: 0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, " +
		"19, 20 and 19 more: not found"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	shard(t, w, 0, 2)
	shard(t, w, 1, 2)
	for kind, other := range map[fault.Kind]Work{
		fault.Unsupported: {Output: w.Output, Settings: "c", Inputs: "b", Items: 40},
		fault.Corrupt:     {Output: w.Output, Settings: "a", Inputs: "c", Items: 40},
	} {
		if _, err := mergeOf(t, other, 2); !errors.Is(err, kind) || !strings.Contains(err.Error(), "out.part-0-of-2") {
			t.Errorf("%v, want %v", err, kind)
		}
		if !shard(t, other, 1, 2) {
			t.Error("the part of other work was kept")
		}
		shard(t, w, 1, 2)
	}
	if _, err := mergeOf(t, w, 2); err != nil {
		t.Error(err)
	}
}

// TestDamagedPart: a part that is cut short is missing, and its shard makes it anew; one with any other byte is refused
// or says the same. A part that cannot be written whole is not there.
func TestDamagedPart(t *testing.T) {
	w := Work{Output: filepath.Join(t.TempDir(), "out"), Settings: "a", Inputs: "b", Items: 3}
	shard(t, w, 0, 1)
	name := w.Output + ".part-0-of-1"
	good := testfile.Read(t, name)
	var wrong [][]byte
	for i := range good {
		changed := slices.Clone(good)
		changed[i] ^= 0x15
		wrong = append(wrong, changed, good[:i])
	}
	for i, b := range wrong {
		testfile.Write(t, name, b)
		all, err := mergeOf(t, w, 1)
		if same := err == nil && all == "0\n1\n2\n" && len(b) == len(good); !same && fault.KindOf(err) == 0 {
			t.Fatalf("%d: %q, %v", i, all, err)
		}
	}
	testfile.Write(t, name, good[:len(good)-1])
	if !shard(t, w, 0, 1) {
		t.Error("a damaged part was kept")
	}
	if all, err := mergeOf(t, w, 1); err != nil || all != "0\n1\n2\n" {
		t.Errorf("%q, %v", all, err)
	}
	f, err := given(w.Output, "--shard", "0/1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(w.Output + ".merged"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = f.Do(ctx, w, func(_ Share, body io.Writer) (any, error) {
		cancel()
		fmt.Fprintln(body, 0)
		return nil, ctx.Err()
	}, nil)
	if left, rerr := os.ReadDir(filepath.Dir(name)); !errors.Is(err, context.Canceled) || rerr != nil || len(left) > 0 {
		t.Errorf("%v: %v are left, %v", err, left, rerr)
	}
}

// TestFlags: what is wrong with the flags is said.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		say, output string
		args        []string
	}{
		{"", "out", nil},
		{"exclude each other", "out", []string{"--shard", "0/1", "--merge", "1"}},
		{`--shard is "2/2": it must be K/N`, "out", []string{"--shard", "2/2"}},
		{`--shard is "-1/2"`, "out", []string{"--shard", "-1/2"}},
		{`--shard is "0"`, "out", []string{"--shard", "0"}},
		{`--shard is ""`, "out", []string{"--shard", ""}},
		{`--shard is "0/100001"`, "out", []string{"--shard", "0/100001"}},
		{"--merge is 0", "out", []string{"--merge", "0"}},
		{`-o is "-": --merge needs the name of an output`, "-", []string{"--merge", "3"}},
		{"", "s3://b/x", []string{"--shard", "0/3"}},
		{`-o is "file:///x": --shard needs the name of an output`, "file:///x", []string{"--shard", "0/3"}},
	} {
		f, err := given(c.output, c.args...)
		said := fmt.Sprint(err)
		fails := c.say == "" && (err != nil || f.Given() != (c.args != nil))
		if fails || c.say != "" && !strings.Contains(said, c.say) {
			t.Errorf("%q: %v, want %q", c.args, err, c.say)
		}
	}
}

// FuzzPart: any file is no part, or one whose body lies in it.
func FuzzPart(f *testing.F) {
	w := Work{Output: filepath.Join(f.TempDir(), "out"), Settings: "a", Inputs: "b", Items: 3}
	d := dividedWork{Work: w, count: 1, marker: newMarker(&w)}
	var b bytes.Buffer
	err := d.write(f.Context(), &b, Share{Count: 3}, func(Share, io.Writer) (any, error) { return nil, nil })
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(t.TempDir(), "part")
		testfile.Write(t, name, b)
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		_, part, err := parse(file)
		if err != nil && fault.KindOf(err) == 0 || err == nil && part.Body.Size() > int64(len(b)) {
			t.Errorf("%+v, %v", part, err)
		}
	})
}

// TestNamesOfParts: parts lie beside the output, whether it is a file, a folder, or a bucket.
func TestNamesOfParts(t *testing.T) {
	for output, want := range map[string]string{
		"a.json": "a.json.part-1-of-3", "out/": "out.part-1-of-3", ".": "output.part-1-of-3",
		"s3://b/k/": "s3://b/k.part-1-of-3", "s3://b/x": "s3://b/x.part-1-of-3",
		"s3://b/": "s3://b/output.part-1-of-3", "gs://b": "gs://b/output.part-1-of-3",
	} {
		divided, err := (&Work{Output: output}).divided(3)
		if err != nil {
			t.Fatal(err)
		}
		if got := divided.name(1); got != want {
			t.Errorf("%s: %s, want %s", output, got, want)
		}
	}
}
