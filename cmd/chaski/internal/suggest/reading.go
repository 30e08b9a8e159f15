package suggest

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/chaski-eo/chaski/internal/magic"
)

// member is a field of a call: its name, and its Python with splitMark.
type member struct {
	name, text string
	of         *table // that has its column; nil of others
}

// reading is one way to read a folder: the parts of a call.
type reading struct {
	source  string // below the folder
	table   *table // that the source is, or nil
	lead    *group
	members []member
	tables  []string
	rows    []string // arguments of Rows
	window  string
	splits  []string
	uses    map[string]bool // files
	counts  []string
	notes   []string
}

func (r *reading) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}
func (r *reading) count(format string, args ...any) {
	r.counts = append(r.counts, fmt.Sprintf(format, args...))
}

// add adds a field. Names that batches have, or other fields, get a number.
func (r *reading) add(name, text string) {
	plain := name
	for k := 2; slices.Contains([]string{"valid", "position", "sample"}, name) ||
		slices.ContainsFunc(r.members, func(m member) bool { return m.name == name }); k++ {
		name = plain + strconv.Itoa(k)
	}
	r.members = append(r.members, member{name: name, text: text})
}

func (r *reading) use(files []*file) {
	for _, f := range files {
		r.uses[f.path] = true
	}
}

// The words of names by which fields have roles.
var (
	imageWords = regexp.MustCompile(`(?i)(^|[^a-z])(images?|imgs?\d?|rgb|optical|opt|merged|data|s2|msi|before|pre|a|` +
		`t1|im1|time1|lr|bands|jpegimages|visible|10m|x)([^a-z]|$)`)
	maskWords = regexp.MustCompile(`(?i)(mask|label|lbl|gt|truth|annotation|semantic|instance|seg|target|class|lulc|` +
		`land_?cover|cls|lc|cultivated)`)
	viewWords = regexp.MustCompile(`(?i)(^|[^a-z])(vis|visual\w*|photos?|preview|thumb\w*|quicklook|browse|` +
		`overlay)([^a-z]|$)`)
	afterWords = regexp.MustCompile(`(?i)(^|[^a-z])(after|post|b|t2|im2|time2|image2)([^a-z]|$)`)
	bandOrder  = []string{"red", "green", "blue", "nir", "swir", "swir1", "swir2"}
	lastDate   = regexp.MustCompile(`[_\-]\d{4}-?\d\d-?\d\d$`)
)

// words is what the pattern of a group says, without names, and own what only its folder and its names say.
func (g *group) words() string { return named.ReplaceAllString(g.pattern, "") }
func (g *group) own() string {
	if g.names == nil || g.fixed() {
		return path.Base(path.Dir(g.words())) + "/" + path.Base(g.words())
	}
	return path.Base(g.dir) + "/" + g.prefix + "/" + strings.TrimSuffix(g.tail, path.Ext(g.tail))
}

// masks reports whether a group has masks of classes: few values or colours of whole numbers.
func (g *group) masks() bool {
	h, word := g.head, maskWords.MatchString(g.words())
	coloured := len(h.colours) > 0 && (word || len(h.colours) <= 32)
	return h.integer() && (coloured || word && h.bands <= 3 && h.format != magic.JPEG)
}

// score says how likely a group has the images of a data set.
func (g *group) score() float64 {
	match := func(words *regexp.Regexp) float64 { return float64(number(words.MatchString(g.own()))) }
	masks := 2*match(maskWords) + float64(number(maskWords.MatchString(g.words())))*2 +
		float64(number(len(g.head.colours) > 0))*3
	return 2*match(imageWords) - masks - 6*match(viewWords) - match(afterWords) + float64(number(g.head.bands > 2)) -
		float64(number(g.head.format == magic.NPY))/2
}

// quoted is a string of Python, and listed a list of them.
func quoted(s string) string        { return strconv.Quote(s) }
func listed(values []string) string { return "[" + strings.Join(each(values, quoted), ", ") + "]" }

func each(list []string, do func(string) string) (out []string) {
	for _, s := range list {
		out = append(out, do(s))
	}
	return out
}

// identifier returns a name of a field.
func identifier(s string) string {
	s = strings.Trim(strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToLower(r)
		}
		return '_'
	}, s), "_")
	if s == "" || unicode.IsDigit(rune(s[0])) {
		return "x" + s
	}
	return s
}

// fieldOf returns the Python of a field: the pattern alone, or Field(…).
func fieldOf(what string, more ...string) string {
	if rest, ok := strings.CutPrefix(what, "pattern="); ok && len(more) == 0 {
		return rest
	}
	return "Field(" + strings.Join(append([]string{what}, more...), ", ") + ")"
}

// field returns the Python of the field of a group. A name alone, of a table, is a column.
func (g *group) field(more []string) string {
	if name := named.FindString(g.pattern); name == g.pattern {
		return fieldOf("column="+quoted(name[1:len(name)-1]), append([]string{`kind="raster"`}, more...)...)
	}
	return fieldOf("pattern="+quoted(g.pattern), more...)
}

// options returns the arguments of the field of a group.
func (r *reading) options(s *search, g *group, masks, some bool) (more []string) {
	h := g.head
	if h.alpha && !masks {
		more = append(more, "bands=[0, 1, 2, 3]")
		r.note("the last band of %s is read as data: without bands= it is a mask (alpha)", g.pattern)
	}
	if h.dims != "" && h.dims != "y x" && h.dims != "b y x" && h.dims != "t b y x" {
		more = append(more, "dims="+quoted(h.dims))
	}
	if h.format == magic.NPY && h.times > 0 {
		r.noteSamples(g.pattern, h.dims)
	}
	if steps, differ := s.steps(g, ""); differ && h.times > 0 {
		more = append(more, fmt.Sprintf("times=range(%d)", steps))
	}
	fill := 255
	if some {
		more, fill = append(more, `missing="fill"`), 0
	}
	if !masks {
		return more
	}
	switch {
	case h.bands == 3 && len(h.colours) > 0:
		var entries []string
		grey := true
		for i, c := range h.colours {
			entries = append(entries, fmt.Sprintf("(%d, %d, %d): %d", c[0], c[1], c[2], i))
			grey = grey && c[0] == c[1] && c[1] == c[2]
		}
		if !grey || len(h.colours) > 2 {
			r.note("the classes of %s are numbered in the order of their colours, as a few files have them: "+
				"change the numbers to those that you want, and add colours that are missing", g.pattern)
		}
		more = append(more, "lut={"+strings.Join(entries, ", ")+"}")
	case h.bands == 1 && len(h.values) == 2 && h.values[0] == 0 && h.values[1] > 1,
		h.bands == 1 && len(h.values) == 1 && h.values[0] == 255:
		more = append(more, fmt.Sprintf("lut={0: 0, %d: 1}", h.values[len(h.values)-1]), fmt.Sprintf("fill=%d", fill))
	case some:
		more = append(more, "fill=0")
	case h.bands > 1:
		r.note("%s has %d bands: bands=[0] picks one", g.pattern, h.bands)
	}
	return append(more, `dtype="int64"`)
}

// parts are the words of a text in lower case.
func parts(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// label returns the name of the field of a group among others: the last of the words that fewest have.
func label(g *group, others []*group) string {
	count := map[string]int{}
	for _, o := range others {
		for w := range counted(parts(strings.TrimSuffix(o.words(), path.Ext(o.pattern)))) {
			count[w]++
		}
	}
	best := "image"
	for _, w := range parts(strings.TrimSuffix(g.words(), path.Ext(g.pattern))) {
		if unicode.IsLetter(rune(w[0])) && w != "s" && (best == "image" || count[w] <= count[best]) {
			best = w
		}
	}
	return best
}

// pixels adds the fields of the leading group and its pairs.
func (r *reading) pixels(s *search, pairs []pair) {
	groups, share := []*group{r.lead}, map[*group]float64{r.lead: 1}
	for _, p := range pairs {
		groups, share[p.group] = append(groups, p.group), p.share
	}
	done := r.together(s, groups)
	masks := 0
	for _, g := range groups {
		masks += number(g != r.lead && g.masks() && !done[g])
	}
	for _, g := range groups {
		r.use(g.files)
		name, role, some := "image", g != r.lead && g.masks(), share[g] < .999
		switch {
		case done[g]:
			continue
		case len(g.head.Arrays) > 0:
			r.arrays(s, g)
			continue
		case g != r.lead && viewWords.MatchString(g.own()):
			r.count("%d files %s look like views of other images, and are not read", len(g.files), g.pattern)
			continue
		case role && masks == 1:
			name = "mask"
		case g != r.lead:
			name = label(g, groups)
		}
		if g.head.bands >= 15 {
			r.note(`if the %d bands of %s are steps of time, layout="n (t c) y x -> n t c y x" parts them`,
				g.head.bands, g.pattern)
		}
		if len(g.names) < len(r.lead.names) {
			r.note("%s is one file for several samples: are these steps of a series (Rows(time=…))?", g.pattern)
		}
		if some {
			r.note("%.0f %% of samples have no file %s: they are filled", 100*(1-share[g]), g.pattern)
		}
		s.homogeneous(r, g)
		r.add(name, g.field(r.options(s, g, role, some)))
		r.count("%s: %d files %s", r.members[len(r.members)-1].name, len(g.files), g.pattern)
	}
}

// noteSamples notes that an axis may be of samples.
func (r *reading) noteSamples(pattern, dims string) {
	r.note(`the axis t of %s is a guess: with dims=%q its images are samples`, pattern,
		strings.Replace(dims, "t", "n", 1))
}

// homogeneous notes files of a group that have other bands.
func (s *search) homogeneous(r *reading, g *group) {
	for i := 0; i < len(g.files); i += max(1, len(g.files)/32) {
		if h := s.header(g.files[i].path); h.bands != g.head.bands {
			r.note("files %s have %d and %d bands: they may be of several kinds", g.pattern, g.head.bands, h.bands)
			return
		}
	}
}

// together adds groups that are bands of one image, and masks of two values in folders beside each other, which are
// one mask of several classes. It returns those that it has added.
func (r *reading) together(s *search, groups []*group) map[*group]bool {
	sets, done, order := map[string][]*group{}, map[*group]bool{}, map[*group]int{}
	for _, g := range groups {
		order[g] = -1
		for _, w := range parts(g.own()) {
			if i := slices.Index(bandOrder, w); i >= 0 || bandWord.MatchString(w) {
				order[g] = max(i, 0)
			}
		}
		h := g.head
		binary := len(h.values) == 2 && h.values[0] == 0
		switch {
		case h.bands != 1 || len(h.Arrays) > 0 || g.names == nil && r.table == nil:
		case order[g] >= 0:
			sets["image "+h.dtype] = append(sets["image "+h.dtype], g)
		case g.masks() && binary && g.names != nil && !g.fixed():
			sets["masks "+path.Dir(g.dir)] = append(sets["masks "+path.Dir(g.dir)], g)
		}
	}
	for _, key := range sorted(sets) {
		set := sets[key]
		if len(set) < 3 {
			continue
		}
		slices.SortStableFunc(set, func(a, b *group) int { return order[a] - order[b] })
		var patterns, more []string
		for _, g := range set {
			done[g] = true
			patterns = append(patterns, g.pattern)
		}
		name, _, _ := strings.Cut(key, " ")
		files, some := 0, false
		for _, g := range set {
			files, some = files+len(g.files), some || len(g.files) < len(r.lead.files)
		}
		if name == "masks" {
			more = r.options(s, set[0], true, some)
			r.note(`a band is a class: lut="masks" makes one map of them, of classes from 1`)
		}
		r.add(name, fieldOf("patterns="+listed(patterns), more...))
		r.count("%s: %d files of %s", name, files, strings.Join(patterns, ", "))
	}
	return done
}

// arrays adds the arrays that all stores of a group have. Arrays of two axes with one shape and dtype are the bands of
// one image. Names may differ in a date at their end.
func (r *reading) arrays(s *search, g *group) {
	starred := func(name string) string { return lastDate.ReplaceAllString(name, "_*") }
	if g.tail == ".npz" {
		starred = func(name string) string { return name }
	}
	bands := map[string][]string{}
	var list []array
	for _, a := range g.head.Arrays {
		same := func(b array) bool { return starred(b.Path) == starred(a.Path) }
		if slices.ContainsFunc(g.files[:min(len(g.files), 8)], func(f *file) bool {
			return !slices.ContainsFunc(s.header(f.path).Arrays, same)
		}) {
			r.note("not all files %s have the array %s, which is not read", g.pattern, a.Path)
			continue
		}
		list = append(list, a)
		if key := fmt.Sprint(a.Shape, a.DType); len(a.Shape) == 2 && !maskWords.MatchString(a.Path) {
			bands[key] = append(bands[key], g.pattern+"::"+starred(a.Path))
		}
	}
	size := func(a array) int {
		n := number(!maskWords.MatchString(a.Path))
		for _, s := range a.Shape {
			n *= s
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b array) int { return size(b) - size(a) })
	for _, a := range list {
		h := &head{format: magic.NPY, dtype: a.DType}
		h.shape(a.Shape)
		set := bands[fmt.Sprint(a.Shape, a.DType)]
		pattern := strings.TrimSuffix(g.pattern+"::"+starred(a.Path), "::") // one array may have no name
		text, options := "pattern="+quoted(pattern), []string{"dims=" + quoted(h.dims)}
		if len(a.Axes) == len(a.Shape) { // a file that says its axes
			h.dims, options = strings.Join(a.Axes, " "), nil
		} else if h.dims == "t b y x" {
			r.noteSamples(pattern, h.dims)
		}
		name := identifier(path.Base(a.Path))
		switch image := slices.ContainsFunc(r.members, func(m member) bool { return m.name == "image" }); {
		case h.dims == "" || h.height < 2 || h.width < 2:
			r.count("array %s of %v %s is not read", a.Path, a.Shape, a.DType)
			continue
		case maskWords.MatchString(a.Path+" "+g.words()) && h.bands == 1 && h.times == 0:
			name, options = "mask", append(options, `dtype="int64"`)
		case len(set) > 2 && len(a.Shape) == 2:
			if text = "patterns=" + listed(set); image {
				continue
			}
			name = "image"
		case !image:
			name = "image"
			if slices.ContainsFunc(list, func(b array) bool {
				return b.Path != a.Path && slices.Equal(b.Shape, a.Shape) && b.DType != a.DType
			}) {
				r.note("that %s is the image is a guess: other arrays have its shape", pattern)
			}
		}
		if steps, differ := s.steps(g, a.Path); differ && h.times > 0 {
			options = append(options, fmt.Sprintf("times=range(%d)", steps))
		}
		r.add(name, fieldOf(text, options...))
	}
	if len(g.files) == 1 {
		r.note("%s is one file: windows, and steps of time in it, are yours to say", g.pattern)
	}
	r.count("%d files %s", len(g.files), g.pattern)
}

// columnsOfNames adds what the names of folders say: the class, if many samples share few.
func (r *reading) columnsOfNames() {
	masks := slices.ContainsFunc(r.members, func(m member) bool { return strings.Contains(m.text, "int64") })
	for _, name := range r.lead.names {
		if name == "id" || name == "start" {
			continue
		}
		values := sorted(counted(r.lead.column(name)))
		numbered := len(skeletons(values)) == 1 && len(values[0]) > 1 &&
			strings.ContainsFunc(values[0], unicode.IsDigit)
		if len(values) < 2 || len(values)*2 > len(r.lead.files) || len(values) > 1000 || numbered {
			r.add(name, quoted(name))
			continue
		}
		kind := "class"
		if masks {
			kind = name
		}
		r.add(kind, fieldOf("column="+quoted(name), "classes="+listed(values)))
		r.count("%s: %d folders", kind, len(values))
	}
}

// nameLabel takes the first word of names as the class, if few have it and nothing else is a label.
func (r *reading) nameLabel() {
	if len(r.members) != 1 || len(r.lead.names) != 1 || len(r.rows)+len(r.tables) > 0 || r.lead.fixed() {
		return
	}
	ids := r.lead.column("id")
	for _, sep := range []string{"__", "_", "-"} {
		n := strings.Count(ids[0], sep)
		values := map[string]int{}
		for _, id := range ids {
			word, _, _ := strings.Cut(id, sep)
			values[word]++
			if n == 0 || word == "" || len(values) > 100 || strings.Count(id, sep) != n ||
				len(word) > 2 && unicode.IsDigit(rune(word[0])) {
				values = nil
				break
			}
		}
		if len(values) < 2 || len(values)*2 > len(ids) {
			continue
		}
		pattern := "{label}" + sep + strings.Repeat("*"+sep, n-1) + "{id}"
		r.members[0].text = strings.Replace(r.members[0].text, "{id}", pattern, 1)
		r.add("label", fieldOf(`column="label"`, "classes="+listed(sorted(values))))
		r.note("the first word of names is taken for the class: %d classes", len(values))
		return
	}
}

// windows sets a window where the images of a group differ, or are scenes.
func (r *reading) windows(s *search, g *group) {
	smallest, largest := s.sides(g)
	if largest[0] == 0 || smallest == largest && largest[0]*largest[1] <= 1<<21 {
		return
	}
	side := 512
	for side > 8 && side > min(smallest[0], smallest[1]) {
		side /= 2
	}
	if g == r.lead {
		r.window = fmt.Sprintf("Grid(%d)", side)
	}
	if smallest != largest {
		r.note("%s have %d × %d to %d × %d pixels: Grid cuts them, and ResizedWindow makes them equal", g.pattern,
			smallest[0], smallest[1], largest[0], largest[1])
	}
}

// leftOut notes files that a pattern fits, too, which are of another group.
func (r *reading) leftOut(s *search, g *group) {
	if g.fixed() || len(r.rows) > 0 {
		return
	}
	mine := map[string]bool{}
	for _, f := range g.files {
		mine[f.path] = true
	}
	start := strings.TrimSuffix(path.Base(g.pattern), "{id}"+g.tail)
	for _, name := range slices.Sorted(maps.Keys(s.prober.paths)) {
		f := s.prober.paths[name]
		if !mine[name] && f.folder == g.files[0].folder && strings.HasSuffix(f.base, g.tail) &&
			strings.HasPrefix(f.base, start) {
			r.rows = append(r.rows, `missing="drop"`)
			r.note("%s also fits %s, which is left out", g.pattern, name)
			return
		}
	}
}
