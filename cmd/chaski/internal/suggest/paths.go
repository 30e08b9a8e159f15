package suggest

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	splitWord = regexp.MustCompile(`(?i)training|train|trn|validation|valid|val|testing|test|dev|eval`)
	// roleName is the name of a folder that says what its files are for a sample, not which samples they are of.
	roleName = regexp.MustCompile(`(?i)^(.*[_\- }])?(images?|imgs?|imgr|masks?|labels?|gt|annotations?|a|b|` +
		`t[12]|s[12]|` +
		`(pre|post|before|after)([_\-].*)?|red|green|blue|nir|rgb|sar|dem|dsm|chm|(im|time|image|label)[12]|` +
		`opt|optical|vis|ir|seg|boundary|boundaries|edges?|semantics?|instances?|lr|hr)$`)
	bandWord = regexp.MustCompile(`(?i)^b\d{1,2}a?$`)
	sizeWord = regexp.MustCompile(`(?i)(\d+n?m|[_.\-]b\d{1,2}a?)\.\w+$`)
	words    = regexp.MustCompile(`[^_\-. /]+`)
	stars    = regexp.MustCompile(`\*(?:[_\-. ]\*)+`)
	digits   = regexp.MustCompile(`\d+`)
	named    = regexp.MustCompile(`\{[^{}]*\}`)
)

// separators part the words of names.
const separators = "_- "

// splitMark stands for the name of a split in a path.
const splitMark = "{S}"

// marked returns a path with all places of its first split word as splitMark, and the word.
func marked(name string) (pattern, word string) {
	letter := func(i int) bool { return i >= 0 && i < len(name) && name[i]|32 >= 'a' && name[i]|32 <= 'z' }
	var out strings.Builder
	end := 0
	for _, m := range splitWord.FindAllStringIndex(name, -1) {
		found := name[m[0]:m[1]]
		lower := letter(m[1]) && name[m[1]] >= 'a' // trainer has none, train/trainimg twice one
		inWord := letter(m[0]-1) || lower && word != found
		if m[0] < end || inWord || word != "" && found != word {
			continue
		}
		word = found
		out.WriteString(name[end:m[0]] + splitMark)
		end = m[1]
	}
	return out.String() + name[end:], word
}

// splits finds the names that differ by the word of a split alone: for each with splitMark its words, sorted.
func splits(names []string) map[string][]string {
	out := map[string][]string{}
	for _, name := range names {
		if pattern, word := marked(name); word != "" && !slices.Contains(out[pattern], word) {
			out[pattern] = append(out[pattern], word)
			slices.Sort(out[pattern])
		}
	}
	maps.DeleteFunc(out, func(_ string, found []string) bool { return len(found) < 2 })
	return out
}

// file is a file with the values of the names in the pattern of its folder.
type file struct {
	path   string // below the folder that is looked at
	folder string // of the path, with splitMark
	base   string
	split  string
	vals   []string
}

func (f *file) stem() string { return strings.TrimSuffix(f.base, path.Ext(f.base)) }

// key joins the values of names, of one split.
func (f *file) key(vals ...string) string { return f.split + "|" + strings.Join(vals, "|") }

// place is a folder with the values of the names that its pattern has.
type place struct {
	folder string
	vals   []string
}

// tree lists folders by what lies in them.
type tree struct {
	files  map[string][]*file         // by folder
	below  map[string]map[string]bool // names of folders in a folder
	look   func(*file) string         // what the header of a file says
	doubts []string
	emit   func(places []place, pattern string, names []string)
}

// grow adds the folders of files.
func (t *tree) grow(files []*file) {
	for _, f := range files {
		t.files[f.folder] = append(t.files[f.folder], f)
		for dir := f.folder; dir != "."; dir = path.Dir(dir) {
			if up := path.Dir(dir); t.below[up] == nil {
				t.below[up] = map[string]bool{}
			}
			t.below[path.Dir(dir)][path.Base(dir)] = true
		}
	}
}

// walk calls emit for the folders with files. Those that differ by a name are one pattern.
func (t *tree) walk(places []place, pattern string, names []string) {
	if slices.ContainsFunc(places, func(p place) bool { return len(t.files[p.folder]) > 0 }) {
		t.emit(places, pattern, names)
	}
	children, kinds := map[string][]place{}, map[string][]string{}
	for _, p := range places {
		for name := range t.below[p.folder] {
			children[name] = append(children[name], place{path.Join(p.folder, name), p.vals})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(children)) {
		kind := t.contents(children[name][0].folder, 0)
		kinds[kind] = append(kinds[kind], name)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, alike := range t.alike(kinds[kind], children) {
			if len(alike) == 1 {
				t.walk(children[alike[0]], path.Join(pattern, alike[0]), names)
				continue
			}
			// The name is the letters that all share: seq of seq1 and seq16.
			start := commonPrefix(alike)
			name := strings.ToLower(strings.TrimFunc(start, func(r rune) bool { return !unicode.IsLetter(r) }))
			if len(name) < 3 || identifier(name) != name {
				name = "folder"
			}
			name += strings.Repeat("_", len(names))
			start = start[:strings.LastIndexAny(start, separators)+1]
			if len(alike) == len(kinds[kind]) {
				start = ""
			}
			var merged []place
			for _, value := range alike {
				for _, p := range children[value] {
					merged = append(merged, place{p.folder, append(slices.Clone(p.vals), value[len(start):])})
				}
			}
			t.walk(merged, path.Join(pattern, start+"{"+name+"}"), append(slices.Clone(names), name))
		}
	}
}

// contents says what lies below a folder, without names.
func (t *tree) contents(folder string, depth int) string {
	found := map[string]bool{}
	for _, f := range t.files[folder] {
		found[strings.ToLower(path.Ext(f.base))] = true
	}
	for name := range t.below[folder] {
		if depth < 12 {
			found["/"+t.contents(path.Join(folder, name), depth+1)] = true
		}
	}
	return "(" + strings.Join(slices.Sorted(maps.Keys(found)), " ") + ")"
}

// alike parts folders of one kind into those that differ by a name. Folders of other roles are alone: those whose
// files have equal names, or other headers.
func (t *tree) alike(names []string, children map[string][]place) (out [][]string) {
	if len(names) == 1 {
		return [][]string{names}
	}
	looks, starts, roles := map[string][]string{}, map[string]bool{}, 0
	for _, name := range names {
		l := t.lookOf(children[name][0].folder, 0)
		looks[l] = append(looks[l], name)
		roles += number(roleName.MatchString(name))
	}
	for _, part := range looks {
		starts[commonPrefix(part)] = true
	}
	if len(looks) > 1 && len(starts) == len(looks) && !starts[""] { // s1_1, s1_12 and s2_1, s2_12
		for _, l := range slices.Sorted(maps.Keys(looks)) {
			out = append(out, t.alike(looks[l], children)...)
		}
		return out
	}
	first := children[names[0]][0].folder
	deep, found := len(t.below[first]) > 0, skeletons(names)
	two := len(names) == 2 && !deep && strings.HasSuffix(names[0], "1") && strings.HasSuffix(names[1], "2")
	numbered := len(found) == 1 && found[names[0]] == nil && !two
	// Folders are samples themselves if their files have the same few names, without numbers.
	var bases []string
	for _, f := range t.files[first] {
		bases = append(bases, f.base)
	}
	samples := len(bases) > 0 && len(skeletons(bases)) == len(bases) &&
		!strings.ContainsFunc(t.files[first][0].stem(), unicode.IsDigit)
	single := t.shared(names, children) > .5 && !deep && !numbered && !samples
	if single && roles*2 < len(names) && !maskWords.MatchString(first) && len(looks) == 1 {
		t.doubts = append(t.doubts, fmt.Sprintf("the folders %s have files of equal names: they are taken for other "+
			"samples, not for other images of one", strings.Join(names[:min(4, len(names))], ", ")))
		single = false
	}
	if !single && roles < len(names) {
		return [][]string{names}
	}
	for _, name := range names {
		out = append(out, []string{name})
	}
	return out
}

// lookOf returns what the headers of the first files below a folder say.
func (t *tree) lookOf(folder string, depth int) string {
	if files := t.files[folder]; len(files) > 0 {
		return t.look(files[0])
	}
	found := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(t.below[folder])) {
		if depth < 4 && len(found) < 4 {
			found[t.lookOf(path.Join(folder, name), depth+1)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ";")
}

// shared returns how many of the files below folders have a name, without constant parts, that others have, too.
func (t *tree) shared(names []string, children map[string][]place) float64 {
	count, total, twice := map[string]int{}, 0, 0
	for _, name := range names {
		var bases []string
		for _, p := range children[name] {
			t.bases(p.folder, "", &bases)
		}
		prefix := commonPrefix(bases)
		prefix = prefix[:strings.LastIndexAny(prefix, separators+"/")+1]
		if strings.EqualFold(strings.Trim(path.Base(prefix), separators), strings.Trim(name, separators)) {
			prefix = "" // the class is often in the name, too: airport/airport_1.jpg
		}
		for _, base := range bases {
			count[strings.TrimPrefix(base, prefix)]++
		}
		total += len(bases)
	}
	for _, n := range count {
		twice += n * number(n > 1)
	}
	return float64(twice) / float64(max(total, 1))
}

// bases appends the paths below a folder without endings, up to a bound.
func (t *tree) bases(folder, below string, out *[]string) {
	for _, f := range t.files[folder][:min(len(t.files[folder]), 5000)] {
		*out = append(*out, below+f.stem())
	}
	for name := range t.below[folder] {
		if len(*out) < 5000 {
			t.bases(path.Join(folder, name), below+name+"/", out)
		}
	}
}

// skeletons returns the different names with # for numbers.
func skeletons(names []string) map[string][]string {
	out := map[string][]string{}
	for _, name := range names {
		s := digits.ReplaceAllString(name, "#")
		out[s] = append(out[s], name)
	}
	return out
}

func commonPrefix(names []string) string {
	if len(names) == 0 {
		return ""
	}
	low, high := slices.Min(names), slices.Max(names)
	i := 0
	for i < len(low) && i < len(high) && low[i] == high[i] {
		i++
	}
	return low[:i]
}

func commonSuffix(names []string) string {
	end := names[0]
	for _, name := range names {
		for !strings.HasSuffix(name, end) {
			end = end[1:]
		}
	}
	return end
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// group has files of one pattern.
type group struct {
	pattern string // with {id} for the varying part of the base, unless it is fixed
	dir     string
	names   []string
	files   []*file
	vals    [][]string      // of files: the values of names
	keys    map[string]bool // of files
	prefix  string          // constant text in front of {id}, and behind it
	tail    string
	word    string   // a constant one in the middle
	ends    []string // the tails that it may have
	head    *head
}

// fixed reports whether the names of folders alone tell the files of the group.
func (g *group) fixed() bool { return !slices.Contains(g.names, "id") }

// newGroup makes a group of files whose base is fixed, or has {id} between a prefix and a tail.
func newGroup(files []*file, dir string, names []string, base, prefix, tail string) *group {
	g := &group{files: files, dir: dir, names: slices.Clone(names), prefix: prefix, tail: tail}
	if base == "" {
		g.names = append(g.names, "id")
		g.set(prefix, tail)
		return g
	}
	g.pattern, g.keys = path.Join(dir, base), map[string]bool{}
	for _, f := range files {
		g.vals = append(g.vals, f.vals)
		g.keys[f.key(f.vals...)] = true
	}
	return g
}

// set gives a group with {id} another prefix and tail.
func (g *group) set(prefix, tail string) {
	id := "{id}"
	if g.word != "" {
		id, prefix = "{start}"+g.word+"{id}", ""
	}
	g.pattern, g.tail, g.vals, g.keys = path.Join(g.dir, prefix+id+tail), tail, nil, map[string]bool{}
	for _, f := range g.files {
		vals, rest := slices.Clone(f.vals), strings.TrimSuffix(strings.TrimPrefix(f.base, prefix), tail)
		if g.word != "" {
			start, end, _ := strings.Cut(rest, g.word)
			vals, rest = append(vals, start), end
		}
		g.vals = append(g.vals, append(vals, rest))
		g.keys[f.key(g.vals[len(g.vals)-1]...)] = true
	}
}

// column returns the values of a name.
func (g *group) column(name string) (out []string) {
	for _, vals := range g.vals {
		out = append(out, vals[slices.Index(g.names, name)])
	}
	return out
}

// project returns the keys of a group for some of its names.
func (g *group) project(names []string) map[string]bool {
	out := map[string]bool{}
	for i, f := range g.files {
		out[f.key(each(names, func(n string) string { return g.vals[i][slices.Index(g.names, n)] })...)] = true
	}
	return out
}

// tails returns the ends of a base that may say what its file is: words behind separators, the longest first.
func tails(base string) (out []string) {
	end := strings.LastIndexByte(base, '.')
	if end < 1 {
		return []string{""}
	}
	for stop, n := end, 0; n < 4; n++ {
		i := strings.LastIndexAny(base[:stop], separators+".")
		if i < 1 || !strings.ContainsFunc(base[i+1:stop], unicode.IsLetter) {
			break
		}
		out, stop = append([]string{base[i:]}, out...), i
	}
	return append(out, base[end:])
}

// fixedNames makes groups of files that each folder has one of, and returns the other files. In folders whose names
// their files have, too, words of few folders are *.
func fixedNames(files []*file, pattern string, names []string, look func(*file) string) (out []*group, rest []*file) {
	keys := map[string]bool{}
	for _, f := range files {
		keys[f.key(f.vals...)] = true
	}
	folders := len(keys)
	if folders < 2 || len(names) == 0 {
		return nil, files
	}
	where, byBase := map[string]map[string]bool{}, map[string][]*file{}
	hasFolderName := true
	for _, f := range files {
		last := f.vals[len(f.vals)-1]
		hasFolderName = hasFolderName && len(last) > 3 && strings.Contains(f.base, last)
		for _, word := range words.FindAllString(f.base, -1) {
			if where[word] == nil {
				where[word] = map[string]bool{}
			}
			where[word][f.key(f.vals...)] = true
		}
	}
	for _, f := range files {
		name := f.base
		if hasFolderName {
			name = stars.ReplaceAllString(words.ReplaceAllStringFunc(name, func(word string) string {
				in := slices.Contains(words.FindAllString(f.vals[len(f.vals)-1], -1), word)
				in = in || !strings.ContainsFunc(word, unicode.IsLetter)
				if !in && len(where[word])*2 > folders || bandWord.MatchString(word) {
					return word
				}
				return "*"
			}), "*")
		}
		byBase[name] = append(byBase[name], f)
	}
	kinds := skeletons(slices.Sorted(maps.Keys(byBase)))
	for _, base := range slices.Sorted(maps.Keys(byBase)) {
		holders, looks, sizes := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, f := range byBase[base] {
			holders[f.key(f.vals...)] = true
		}
		list := kinds[digits.ReplaceAllString(base, "#")]
		for _, name := range list {
			looks[look(byBase[name][0])] = true
			sizes[sizeWord.ReplaceAllString(name, "")] = true
		}
		// Names that differ by numbers are a series, unless these are bands, or sizes of pixels, or tell kinds apart.
		alone := len(looks) == len(list) || len(sizes) == 1 && sizeWord.MatchString(base)
		if len(holders)*2 > folders && len(holders) == len(byBase[base]) && alone &&
			strings.ContainsFunc(strings.TrimSuffix(base, path.Ext(base)), unicode.IsLetter) {
			out = append(out, newGroup(byBase[base], pattern, names, base, "", ""))
			continue
		}
		rest = append(rest, byBase[base]...)
	}
	return out, rest
}

// groupsOf parts the files of folders that are one pattern by the ends of their names.
func groupsOf(files []*file, pattern string, names []string, look func(*file) string) []*group {
	out, rest := fixedNames(files, pattern, names, look)
	count, byTail, heads := map[string]int{}, map[string][]*file{}, map[string]map[string]bool{}
	for _, f := range rest {
		for _, tail := range tails(f.base) {
			count[tail]++
		}
	}
	for _, f := range rest {
		tail := path.Ext(f.base)
		for _, t := range tails(f.base) {
			if count[t] > 1 && count[t]*15 >= len(rest) {
				tail = t
				break
			}
		}
		if byTail[tail] = append(byTail[tail], f); heads[tail] == nil {
			heads[tail] = map[string]bool{}
		}
		heads[tail][f.key(append(slices.Clone(f.vals), strings.TrimSuffix(f.base, tail))...)] = true
	}
	// Kinds of files have the same names in front of their ends. An end that no other kind shares names with says
	// which sample it is, unless all files have it.
	kept := map[string][]*file{}
	for tail, list := range byTail {
		ext, alone, best := path.Ext(list[0].base), true, 0.
		plain := !strings.ContainsFunc(tail, unicode.IsDigit) ||
			bandWord.MatchString(strings.Trim(strings.TrimSuffix(tail, ext), separators+"."))
		for other := range heads {
			alone = alone && (other == tail || path.Ext(other) != ext)
			if other != tail && (plain || look(byTail[other][0]) != look(list[0])) {
				best = max(best, overlap(heads[tail], heads[other]))
			}
		}
		if best < .5 && !alone {
			tail = ext
		}
		kept[tail] = append(kept[tail], list...)
	}
	for _, tail := range slices.Sorted(maps.Keys(kept)) {
		list := kept[tail]
		slices.SortFunc(list, func(a, b *file) int { return cmp.Compare(a.path, b.path) })
		var stems []string
		for _, f := range list {
			stems = append(stems, strings.TrimSuffix(f.base, tail))
		}
		prefix := commonPrefix(stems)
		prefix = prefix[:strings.LastIndexAny(prefix, separators)+1]
		if len(list) == 1 || slices.Contains(stems, prefix) {
			prefix = ""
		}
		g := newGroup(list, pattern, names, "", prefix, tail)
		if g.ends = []string{tail}; len(list) > 1 {
			end := commonSuffix(stems)
			for i := len(end) - 1; i >= 0; i-- {
				if strings.IndexByte(separators, end[i]) >= 0 {
					g.ends = append(g.ends, end[i:]+tail)
				}
			}
		}
		out = append(out, g)
	}
	return out
}

// overlap returns which part of the smaller set is in the other.
func overlap(a, b map[string]bool) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := 0
	for key := range a {
		n += number(b[key])
	}
	return float64(n) / float64(max(len(a), 1))
}

// cuts returns the prefixes that a group may have: all starts of the constant one that end at a separator.
func (g *group) cuts() []string {
	out := []string{""}
	for i := range g.prefix {
		if strings.IndexByte(separators, g.prefix[i]) >= 0 {
			out = append(out, g.prefix[:i+1])
		}
	}
	return out
}

// join sets the prefix and tail of other so that its files are of the samples of lead, and returns the share of
// samples that have one.
func join(lead, other *group) (best float64) {
	if !other.fixed() && lead.fixed() || slices.ContainsFunc(other.names, func(n string) bool {
		return !slices.Contains(lead.names, n)
	}) || strings.Contains(lead.pattern, splitMark) != strings.Contains(other.pattern, splitMark) {
		return 0
	}
	samples := lead.project(other.names)
	share := func() float64 {
		n := 0
		for key := range other.keys {
			n += number(samples[key])
		}
		if n*2 < len(other.keys) { // most of its files must be of a sample, too
			return 0
		}
		return float64(n) / float64(len(samples))
	}
	if other.fixed() {
		return share()
	}
	cut, tail := "", other.tail
	for _, end := range other.ends {
		for _, c := range other.cuts() {
			other.set(c, end)
			if p := share(); p > best {
				best, cut, tail = p, c, end
			}
		}
	}
	other.set(cut, tail)
	return best
}

// middles finds the words in the middle by which the names of two groups differ: x_image_1 and x_chip_1.
func middles(g, other *group) {
	if g.fixed() || other.fixed() || g.word+other.word != "" || !slices.Equal(g.names, other.names) {
		return
	}
	constants := func(g *group) (out []string) {
		base := strings.TrimSuffix(g.files[0].base, g.tail)
		for _, span := range words.FindAllStringIndex(base, -1) {
			if span[0] == 0 || span[1] == len(base) || !strings.ContainsFunc(base[span[0]:span[1]], unicode.IsLetter) {
				continue
			}
			word := base[span[0]-1 : span[1]+1]
			if !slices.ContainsFunc(g.files, func(f *file) bool { return strings.Count(f.base, word) != 1 }) {
				out = append(out, word)
			}
		}
		return out
	}
	keys := func(g *group, word, as string) map[string]bool {
		out := map[string]bool{}
		for _, f := range g.files {
			base := strings.Replace(strings.TrimSuffix(f.base, g.tail), word, as, 1)
			out[f.key(append(slices.Clone(f.vals), base)...)] = true
		}
		return out
	}
	for _, w := range constants(g) {
		for _, v := range constants(other) {
			if w == v || overlap(keys(g, w, w), keys(other, v, w)) < .5 {
				continue
			}
			for g, word := range map[*group]string{g: w, other: v} {
				g.word, g.names = word, append(slices.Clone(g.names[:len(g.names)-1]), "start", "id")
				g.set("", g.tail)
			}
			return
		}
	}
}

// pair is a group that is joined to a leading one.
type pair struct {
	*group
	share float64 // of the samples that have a file
}

// joined joins groups to a leading one, whose prefix becomes the one that explains most files.
func joined(lead *group, groups []*group) (pairs []pair, files int) {
	cuts := lead.cuts()
	if lead.fixed() {
		cuts = []string{""}
	}
	best := ""
	for i, cut := range append(cuts, "\x00") {
		last := i == len(cuts)
		if last {
			cut = best
		}
		if !lead.fixed() {
			lead.set(cut, lead.tail)
		}
		var found []pair
		n := 0
		for _, other := range groups {
			c := *other
			if other.files[0] == lead.files[0] {
				continue
			}
			if share := join(lead, &c); share >= .3 {
				found, n = append(found, pair{&c, share}), n+len(c.files)
			}
		}
		if last || n > files {
			best, pairs, files = cut, found, n
		}
	}
	return pairs, files
}
