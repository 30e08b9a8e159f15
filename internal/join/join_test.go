package join

import (
	"fmt"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// ends returns a path and what follows each of its slashes.
func ends(path string) (out []string) {
	parts := strings.Split(path, "/")
	for i := range parts {
		out = append(out, strings.Join(parts[i:], "/"))
	}
	return out
}

// stemOf returns a path without its ending, as the documentation says it.
func stemOf(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	for _, ending := range []string{".tif", ".png"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// found is a name that has an end of a text, and how: "a", its number; "b", its stem; "c", its path; and "d", its key.
type found struct{ name, how string }

// slow returns the names that the ends of a text have, by maps of strings.
func slow(list []string, key, text string) (out []found) {
	names, stems := map[string]bool{}, map[string]string{}
	for _, name := range list {
		names[name], stems[stemOf(name)] = true, name
	}
	for _, end := range ends(text) {
		stem := stemOf(end)
		short := strings.TrimLeft(stem, "0")
		if _, err := strconv.Atoi(stem); err == nil && short == "" {
			short = "0"
		}
		_, err := strconv.Atoi(stem)
		switch {
		case names[end] && end == key:
			out = append(out, found{end, "d"})
		case names[end]:
			out = append(out, found{end, "c"})
		case names[stem]:
			out = append(out, found{stem, "b"})
		case stems[stem] != "":
			out = append(out, found{stems[stem], "b"})
		case err == nil && short != stem && names[short]:
			out = append(out, found{short, "a"})
		}
	}
	return out
}

// draw returns paths, all different, some of which end in others, differ in their endings, or are numbers.
func draw(random *rand.Rand, n int) (out []string) {
	for range n {
		var parts []string
		for range 1 + random.IntN(3) {
			parts = append(parts, []string{"a", "b", "ab", "007", "7", "0", "00", "!"}[random.IntN(8)])
		}
		name := strings.Join(parts, []string{"/", "/", "/", `\`}[random.IntN(4)]) +
			[]string{"", "", ".tif", ".png", ".json"}[random.IntN(5)]
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// TestNamesAsSlow compares the names that mean a sample with those of maps of strings, and the samples that names mean.
func TestNamesAsSlow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		list, samples := draw(random, 1+random.IntN(8)), draw(random, 1+random.IntN(8))
		stems := map[string]bool{}
		list = slices.DeleteFunc(list, func(name string) bool { // see TestErrors
			twin := stems[stemOf(name)]
			stems[stemOf(name)] = true
			return twin
		})
		joined, best := Of(New(list)), map[string]string{}
		for i := range samples {
			samples[i] = strings.ReplaceAll(samples[i], `\`, "/")
			joined.AddAll(int64(i), samples[i], samples[i])
			for _, f := range slow(list, samples[i], samples[i]) {
				best[f.name] = max(best[f.name], f.how)
			}
		}
		var want, got, missing []string
		several := false
		for _, name := range list {
			keys := map[string]bool{}
			for row, key := range samples {
				if slices.Contains(slow(list, key, key), found{name, best[name]}) {
					want, keys[key] = append(want, fmt.Sprint(row, " ", name)), true
				}
			}
			if several = several || len(keys) > 1; best[name] == "" {
				missing = append(missing, name)
			}
		}
		for row, name := range joined.Matches() {
			got = append(got, fmt.Sprint(row, " ", list[name]))
		}
		slices.Sort(want)
		slices.Sort(got)
		lacks, all := joined.Missing()
		if err := joined.Err("", ""); !slices.Equal(want, got) || (err != nil) != several || all != len(list) ||
			!slices.Equal(lacks, missing) {
			t.Fatalf("%q of %q: %q, want %q; %q are missing, want %q; %v", list, samples, got, want, lacks, missing,
				err)
		}
		for _, key := range samples {
			nearest, longest := found{}, 0
			parts := func(f found) int { return len(ends(stemOf(f.name))) }
			for _, f := range slow(list, key, key) {
				if f.how > "a" {
					longest = max(longest, parts(f))
				}
				if f.how > min(nearest.how, "c") {
					nearest = f
				}
			}
			m, ok := joined.Best(key, key)
			doubtful := nearest.how == "c" && parts(nearest) < longest // another has more of the path
			if ok != (nearest.name != "") || ok && list[m.Name] != nearest.name || m.Several != doubtful {
				t.Fatalf("%q of %q: %+v, want %q", key, list, m, nearest)
			}
		}
	}
}

// mostAlike returns the names that have most of their last parts in common with a text, all in a form, and how many. A
// name that is the end of the text is nearer than one with more in front.
func mostAlike(list []string, text string, form func(string) string) (want []string, most int) {
	most = 1
	for _, name := range list {
		same, first := 0, ends(form(name))
		for _, end := range ends(form(text)) {
			if slices.Contains(first, end) && end != "" {
				same = max(same, len(ends(end)))
			}
		}
		if same > most {
			most, want = same, nil
		}
		if same == most {
			want = append(want, name)
		}
	}
	whole := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return len(ends(form(name))) > most })
	if len(whole) > 0 {
		return whole, most
	}
	return want, most
}

// TestApartAsSlow compares the name that is found for a text with a look at how many of their last parts all have in
// common with it, or without endings if none has one. A name is in doubt if another has more in common without endings.
func TestApartAsSlow(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		list, text := draw(random, 1+random.IntN(8)), strings.ReplaceAll(draw(random, 1)[0], `\`, "/")
		want, most := mostAlike(list, text, func(name string) string { return name })
		stems, longest := mostAlike(list, text, stemOf)
		doubtful := want != nil && longest > most
		if want == nil {
			want = stems
		}
		m, ok := Apart(list).Best(text, text)
		if want == nil && m.Near < stem { // a number
			continue
		}
		if ok != (want != nil) || !slices.Contains(want, list[m.Name]) || m.Several != (len(want) > 1 || doubtful) {
			t.Fatalf("%q of %q: %+v, want %q", text, list, m, want)
		}
	}
}

// TestElsewhere: names of another machine are told by the folders that not all of them share, and by one more.
func TestElsewhere(t *testing.T) {
	for _, c := range []struct{ names, samples, want string }{
		{"/home/me/a/1.tif /home/me/b/2.tif", "/data/a/1.tif /data/b/2.tif", "0 1"},
		{`C:\set\a\1.tif C:\set\a\2.tif`, "/data/a/2.tif /data/b/2.tif", "- 0"},
		{"/home/val/1.tif", "/data/train/1.tif /data/val/1.tif", "1"},
		{"/r/x/a/7.tif /r/x/b/8.tif", "/q/x/a/7.tif /q/y/a/7.tif /q/b/8.tif", "0 2"},
		{"./a/1 ./b/2", "a/1.tif b/2.tif", "0 1"},
		{"1 2", "a/1 a/3", "0 -"},
		{"a//1 a/1", "a/1", "nil"}, {"/x/y/a//1 /x/y/a/1", "a/1", "nil"},
	} {
		names := New(strings.Fields(c.names)).Elsewhere()
		got := "nil"
		if names != nil {
			joined := Of(names)
			for row, path := range strings.Fields(c.samples) {
				joined.AddAll(int64(row), path, path)
			}
			mine := slices.Repeat([]string{"-"}, len(names.list))
			for row, name := range joined.Matches() {
				mine[name] = fmt.Sprint(row)
			}
			got = strings.Join(mine, " ")
		}
		if got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.names, c.samples, got, c.want)
		}
	}
	if New([]string{"", ""}).Elsewhere() != nil {
		t.Error("no names are elsewhere")
	}
}

// TestErrors: a name that means several samples, a sample that several names mean, and names that come twice are told.
func TestErrors(t *testing.T) {
	joined := Of(New([]string{"1.tif", "2.png", "2.jpg", "1.tif", "x"}))
	if err := joined.Unique("id", ""); fault.KindOf(err) != fault.Corrupt ||
		!strings.Contains(err.Error(), `column id: several rows have the key ["1.tif"]: a table`) {
		t.Error(err)
	}
	joined.AddAll(0, "a/1.tif", "a/1.tif")
	if err := joined.Err("ids", "way"); err != nil {
		t.Error(err)
	}
	joined.AddAll(1, "b/1.tif", "b/1.tif")
	if err := joined.Err("ids", "way"); fault.KindOf(err) != fault.Corrupt ||
		!strings.Contains(err.Error(), `"1.tif" names several samples, such as "a/1.tif" and "b/1.tif": way`) {
		t.Error(err)
	}
	for _, c := range []struct{ keys, sample, other string }{
		{"a.tif b/a.png", "b/a.tif", `"a.tif" and "b/a.png" are both`},
		{"b/a a.tif", "b/a.tif", `"a.tif" and "b/a" are both`},
		{"a.png a.jpg", "a.tif", `"a.png" and "a.jpg" are both`},
		{"a b/a", "b/a.tif", ""}, {"b/a.tif a.tif", "b/a.tif", ""}, {"b/a.tif b/a.png", "b/a.tif", ""},
	} {
		names := New(strings.Fields(c.keys))
		list := Of(names)
		list.AddBest(0, c.sample, c.sample)
		rows := names.RowsOf([]string{c.sample}, func(file string) string { return file })
		for _, err := range []error{list.Err("x", "way"), rows.Err("x", "files", true), rows.Err("x", "files", false)} {
			if (err != nil) != (c.other != "") || err != nil && !strings.Contains(err.Error(), c.other) {
				t.Errorf("%s of %s: %v", c.keys, c.sample, err)
			}
		}
	}
	joined.AddBest(2, "2.tif", "2.tif")
	if err := joined.Err("ids", "way"); fault.KindOf(err) != fault.Corrupt ||
		!strings.Contains(err.Error(), `"2.png" and "2.jpg" are both the sample "2.tif": way`) {
		t.Error(err)
	}
	if missing, all := joined.Missing(); !slices.Equal(missing, []string{"2.jpg", "x"}) || all != 4 {
		t.Error(missing, all)
	}
}

// TestRowsOf: a row belongs to the files that have its key, with or without any ending, and to others that have it as
// nearly as any.
func TestRowsOf(t *testing.T) {
	stem := func(file string) string { return strings.TrimSuffix(file, path.Ext(file)) }
	for _, c := range []struct{ keys, files, want, says string }{
		{"a a.tif - b -", "a a.tif b.tif", "0 1 3", ""},
		{"a b", "a.v1.json b.txt c", "-1 1 -1", `has neither "a.v1.json" nor "a.v1", and none for 1 more files`},
		{"a", "a a.tif a.png", "0 0 0", ""},
		{"003.v2 002 sub/002.tif", "sub/002.tif sub/003.v2.tif x/002.tif", "2 0 1", ""},
		{"a.png", "a.png a.tif", "0 -1", `has neither "a.tif" nor "a"`},
		{"a.png", "a.tif x", "0 -1", `has no "x"`},
		{"7", "007.tif 07.txt", "0 0", ""},
		{"7", "007.tif 7.tif", "-1 0", `"007.tif"`},
	} {
		keys := strings.Fields(c.keys)
		for i, key := range keys {
			keys[i] = strings.Trim(key, "-")
		}
		rows := New(keys).RowsOf(strings.Fields(c.files), stem)
		err := rows.Err("id", "files", false)
		if got := strings.Trim(fmt.Sprint(rows.Of), "[]"); got != c.want || (err != nil) != (c.says != "") ||
			err != nil && (fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s of %s: %s, want %s: %v", c.files, c.keys, got, c.want, err)
		}
		used := map[string]bool{}
		for row := range strings.FieldsSeq(c.want) {
			used[row] = row != "-1"
		}
		delete(used, "-1")
		if got := rows.Unused; got != len(keys)-len(used) {
			t.Errorf("%s of %s: %d unused", c.files, c.keys, got)
		}
	}
}

// TestNamesOfManyParts: names of a hostile file take memory for few of their parts.
func TestNamesOfManyParts(t *testing.T) {
	list := make([]string, 1<<10)
	for i := range list {
		list[i] = fmt.Sprint(i, strings.Repeat("/", 4000), i)
	}
	names := Apart(list)
	if n := len(names.exact.slots) + len(names.loose().slots); n > 30*len(list) {
		t.Errorf("%d slots of %d names", n, len(list))
	}
	for i, name := range list {
		if m, ok := names.Best(name, name); !ok || m.Name != int32(i) || m.Several {
			t.Fatal(i, m, ok)
		}
	}
}

// TestMemoryOfNames: a name takes at most 16 bytes beside its text, and 32 if its ending counts.
func TestMemoryOfNames(t *testing.T) {
	const n = 1 << 20
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%07d.tif", i)
	}
	used := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := used()
	names := New(list)
	exact := used() - before
	names.Best("none", "none")
	if both := used() - before; exact > 16*n || both > 32*n {
		t.Errorf("%d bytes of a name, %d with endings", exact/n, both/n)
	}
	runtime.KeepAlive(names)
}
