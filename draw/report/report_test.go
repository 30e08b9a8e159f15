package report

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write writes a TOG of 16-bit samples, or of bytes.
func write(t *testing.T, path string, o tiff.TOGOptions, samples []uint16) {
	t.Helper()
	var pixels []byte
	for _, v := range samples {
		if o.DType == chunk.Uint8 {
			pixels = append(pixels, byte(v))
		} else {
			pixels = binary.LittleEndian.AppendUint16(pixels, v)
		}
	}
	o.Tile = 16
	var b bytes.Buffer
	if err := tiff.WriteTOG(&b, pixels, o); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// utm is a place in UTM zone 33 north, with 10 m a pixel.
func utm(x, y float64) tiff.Geo {
	return tiff.Geo{
		EPSG: 32633, HasTransform: true, Transform: [6]float64{x, 10, 0, y, 0, -10},
		GeoKeys: []uint16{1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633},
	}
}

// node is an element of a page.
type node struct{ *html.Node }

func (n node) attr(name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text returns the text of an element, with white space collapsed.
func (n node) text() string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// all returns the elements with a name ("" for any) and a class ("" for any).
func (n node) all(name, class string) (list []node) {
	for c := range n.Descendants() {
		e := node{c}
		if c.Type == html.ElementNode && (name == "" || c.Data == name) &&
			(class == "" || slices.Contains(strings.Fields(e.attr("class")), class)) {
			list = append(list, e)
		}
	}
	return list
}

func texts(list []node) (out []string) {
	for _, n := range list {
		out = append(out, n.text())
	}
	return out
}

// pageOf makes a report and reads its page.
func pageOf(t *testing.T, o Options) (*Report, node) {
	t.Helper()
	r, err := Make(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r, parse(t, r)
}

func parse(t interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}, r *Report,
) node {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	n, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	standsAlone(t, node{n}, b.String())
	return node{n}
}

// elements lists the HTML elements that a page may use.
var elements = strings.Fields(
	"html head meta title style body main header p h1 h2 dl div dt dd code span section ul li " +
		"figure figcaption img b i svg path text table thead tbody tr th td footer")

var foreign = regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]`)

// standsAlone requires that nothing in a page runs or loads anything, whatever the names in the
// dataset.
func standsAlone(t interface{ Errorf(string, ...any) }, page node, source string) {
	for _, e := range page.all("", "") {
		if !slices.Contains(elements, e.Data) {
			t.Errorf("an element %q", e.Data)
		}
		for _, a := range e.Attr {
			switch {
			case strings.HasPrefix(strings.ToLower(a.Key), "on"), a.Key == "href", a.Key == "srcset", a.Key == "action":
				t.Errorf("an attribute %s=%q", a.Key, a.Val)
			case a.Key == "src" && !strings.HasPrefix(a.Val, "data:image/png;base64,"):
				t.Errorf("a source %q", a.Val)
			case a.Key == "style" &&
				!regexp.MustCompile(`^(width:[0-9.]+%;?)?(background-color:#[0-9a-f]{6})?$`).MatchString(a.Val):
				t.Errorf("a style %q", a.Val)
			}
		}
	}
	for _, s := range page.all("style", "") {
		text := s.text()
		if strings.Contains(text, "url(") || strings.Contains(text, "@import") || foreign.MatchString(text) {
			t.Errorf("the style sheet asks for something")
		}
	}
	if !strings.Contains(source, "default-src &#39;none&#39;") && !strings.Contains(source, "default-src 'none'") {
		t.Errorf("no content security policy")
	}
}

// pair makes a dataset of images and masks: n samples with 2 bands of 20 by 30 pixels, one row in
// ten nodata, and masks of 0, 1 and 7.
func pair(t *testing.T, n int) (dir string, images, masks [][]uint16) {
	dir = t.TempDir()
	for i := range n {
		image := make([]uint16, 2*20*30)
		for k := range image {
			image[k] = uint16(100 + (k*k*(i+3)+17*k)%3000)
			if k/30%10 == 0 {
				image[k] = 9
			}
		}
		mask := make([]uint16, 20*30)
		for k := range mask {
			mask[k] = []uint16{0, 0, 1, 7}[(k/7+i)%4]
		}
		name := fmt.Sprintf("%03d.tif", i)
		write(t, filepath.Join(dir, "images", name), tiff.TOGOptions{
			Shape: [3]int{2, 20, 30}, DType: chunk.Uint16, NoData: "9",
			BandNames: []string{"B04", "B08"}, Geo: utm(500000+400*float64(i), 4600000),
		}, image)
		write(t, filepath.Join(dir, "masks", name), tiff.TOGOptions{
			Shape: [3]int{1, 20, 30}, DType: chunk.Uint8, Geo: utm(500000+400*float64(i), 4600000),
		}, mask)
		images, masks = append(images, image), append(masks, mask)
	}
	return dir, images, masks
}

func pairFields() []loader.Field {
	return []loader.Field{{Name: "image", Pattern: "images/{id}.tif"}, {Name: "mask", Pattern: "masks/{id}.tif"}}
}

// cells returns the table of a field's bands, by band and column.
func cells(t *testing.T, section node) map[string]map[string]string {
	t.Helper()
	tables := section.all("table", "bands")
	if len(tables) != 1 {
		t.Fatalf("%d tables", len(tables))
	}
	head := texts(tables[0].all("thead", "")[0].all("th", ""))
	out := map[string]map[string]string{}
	for _, row := range tables[0].all("tbody", "")[0].all("tr", "") {
		values := append(texts(row.all("th", "")), texts(row.all("td", ""))...)
		out[values[0]] = map[string]string{}
		for i, v := range values {
			out[values[0]][head[i]] = v
		}
	}
	return out
}

func field(t *testing.T, page node, name string) node {
	t.Helper()
	for _, s := range page.all("section", "field") {
		if s.attr("data-field") == name {
			return s
		}
	}
	t.Fatalf("no section of %s", name)
	return node{}
}

// number reads a number as the page writes it.
func number(t *testing.T, text string) float64 {
	t.Helper()
	text = strings.NewReplacer("\u202f", "", "−", "-", "%", "", " ", "").Replace(text)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestNumbersAreThoseOfThePixels: the numbers of the table and the counts of the classes equal
// those of a plain loop over the pixels that were written.
func TestNumbersAreThoseOfThePixels(t *testing.T) {
	dir, images, masks := pair(t, 7)
	_, page := pageOf(t, Options{Source: dir, Fields: pairFields()})
	bands := cells(t, field(t, page, "image"))
	for b, name := range []string{"B04", "B08"} {
		var valid []float64
		all, sum := 0.0, 0.0
		for _, img := range images {
			for _, v := range img[b*600:][:600] {
				if all++; v != 9 {
					valid = append(valid, float64(v))
					sum += float64(v)
				}
			}
		}
		slices.Sort(valid)
		n := float64(len(valid))
		mean, variance := sum/n, 0.0
		for _, v := range valid {
			variance += (v - mean) * (v - mean) / n
		}
		percentile := func(p float64) float64 {
			at := p / 100 * (n - 1)
			i := int(at)
			return valid[i] + (at-float64(i))*(valid[min(i+1, len(valid)-1)]-valid[i])
		}
		for column, want := range map[string]float64{
			"Valid":  n,
			"nodata": math.Round(1000*(all-n)/all) / 10,
			"NaN":    0,
			"Inf":    0,
			"Mean":   mean,
			"Std":    math.Sqrt(variance),
			"Min":    valid[0],
			"2.5 %":  percentile(2.5),
			"Median": percentile(50),
			"98.5 %": percentile(98.5),
			"Max":    valid[len(valid)-1],
		} {
			if got := number(t, bands[name][column]); math.Abs(got-want) > 1e-5*math.Abs(want) {
				t.Errorf("%s of %s is %v, want %v", column, name, got, want)
			}
		}
	}
	want := map[string]int{}
	for _, m := range masks {
		for _, v := range m {
			want[strconv.Itoa(int(v))]++
		}
	}
	bars := field(t, page, "mask").all("div", "bar")
	if len(bars) != len(want) {
		t.Errorf("%d classes, want %d", len(bars), len(want))
	}
	for _, b := range bars {
		name := b.all("span", "name")[0].text()
		if got := number(t, b.all("span", "count")[0].text()); int(got) != want[name] {
			t.Errorf("class %s has %v pixels, want %d", name, got, want[name])
		}
		got, share := number(t, b.all("span", "share")[0].text()), 100*float64(want[name])/(7*600)
		if math.Abs(got-share) > 0.051 {
			t.Errorf("class %s has %v %% of the pixels, want %v", name, got, share)
		}
	}
}

// TestHeadSaysWhatTheFilesAre: counts, sizes and ratio are those of the files, the fingerprint that
// of the catalog.
func TestHeadSaysWhatTheFilesAre(t *testing.T) {
	dir, _, _ := pair(t, 5)
	r, page := pageOf(t, Options{Source: dir, Fields: pairFields(), Title: "my data"})
	var bytes int64
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.tif"))
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		bytes += st.Size()
	}
	if got := r.Fields[0].Bytes + r.Fields[1].Bytes; got != bytes {
		t.Errorf("%d bytes, want %d", got, bytes)
	}
	if r.Fields[0].Decoded != 5*2*600*2 || r.Fields[1].Decoded != 5*600 {
		t.Errorf("%d and %d bytes decoded", r.Fields[0].Decoded, r.Fields[1].Decoded)
	}
	facts := map[string]string{}
	for _, f := range page.all("div", "fact") {
		facts[f.all("span", "name")[0].text()] = f.all("span", "value")[0].text()
	}
	if facts["Samples"] != "5" || !strings.HasSuffix(facts["Size"], "KiB") ||
		number(t, strings.TrimSuffix(facts["Size"], " KiB")) != math.Round(float64(bytes)/1024*10)/10 {
		t.Errorf("facts %v of %d bytes", facts, bytes)
	}
	tab, err := catalog.Open(t.Context(), dir, []catalog.Source{
		{Field: "image", Pattern: "images/{id}.tif"},
		{Field: "mask", Pattern: "masks/{id}.tif"},
	}, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	if got := page.all("code", "")[0].text(); got != tab.Fingerprint() {
		t.Errorf("fingerprint %s, want %s", got, tab.Fingerprint())
	}
	if got := page.all("h1", "")[0].text(); got != "my data" {
		t.Errorf("title %q", got)
	}
	lines := field(t, page, "image").all("dl", "lines")[0].text()
	for _, want := range []string{"2 × 20 × 30 uint16", "EPSG:32633", "zstd", "nodata9"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in %q", want, lines)
		}
	}
}

// TestChipsAreTheFirstOfTheOrder: the chips are the first samples of the seeded order, and show the
// pixels that were written.
func TestChipsAreTheFirstOfTheOrder(t *testing.T) {
	dir, images, masks := pair(t, 9)
	for _, seed := range []uint64{0, 7} {
		_, page := pageOf(t, Options{Source: dir, Fields: pairFields(), Seed: seed, Samples: 4, Bands: []int{1}})
		order := shuffle.NewOrder(seed, 0, 9, true)
		chips := page.all("figure", "chip")
		if len(chips) != 4 {
			t.Fatalf("%d chips", len(chips))
		}
		for i, c := range chips {
			row := int(order.At(int64(i)))
			if got := c.attr("data-row"); got != strconv.Itoa(row) {
				t.Errorf("chip %d is sample %s, want %d", i, got, row)
			}
			if got, want := c.all("span", "id")[0].text(), fmt.Sprintf("images/%03d.tif", row); got != want {
				t.Errorf("chip %d is called %q, want %q", i, got, want)
			}
			pictures := c.all("img", "")
			if len(pictures) != 2 {
				t.Fatalf("%d pictures", len(pictures))
			}
			checkImage(t, decode(t, pictures[0]), images[row][600:])
			checkMask(t, decode(t, pictures[1]), masks[row])
		}
	}
}

func decode(t *testing.T, img node) *image.NRGBA {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(img.attr("src"), "data:image/png;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if img.attr("width") != strconv.Itoa(p.Bounds().Dx()) || img.attr("height") != strconv.Itoa(p.Bounds().Dy()) {
		t.Errorf("%s by %s are said of %v", img.attr("width"), img.attr("height"), p.Bounds())
	}
	img8 := image.NewNRGBA(p.Bounds())
	draw.Draw(img8, p.Bounds(), p, image.Point{}, draw.Src)
	return img8
}

// checkImage requires that a stretch keeps the order of values, and that nodata is transparent.
func checkImage(t *testing.T, img *image.NRGBA, want []uint16) {
	t.Helper()
	if img.Rect.Dx() != 30 || img.Rect.Dy() != 20 {
		t.Fatalf("a picture of %v", img.Rect)
	}
	type sample struct {
		value uint16
		grey  uint8
	}
	var s []sample
	for k, v := range want {
		c := img.NRGBAAt(k%30, k/30)
		if (c.A == 0) != (v == 9) {
			t.Fatalf("sample %d of value %d is %v", k, v, c)
		}
		if v != 9 {
			s = append(s, sample{v, c.R})
		}
	}
	slices.SortFunc(s, func(a, b sample) int { return int(a.value) - int(b.value) })
	for i := range s[1:] {
		if s[i].grey > s[i+1].grey {
			t.Fatalf("value %d is %d, value %d is %d", s[i].value, s[i].grey, s[i+1].value, s[i+1].grey)
		}
	}
	if s[0].grey != 0 || s[len(s)-1].grey != 255 {
		t.Errorf("from %d to %d", s[0].grey, s[len(s)-1].grey)
	}
}

// checkMask requires one colour for each value, and another for another value.
func checkMask(t *testing.T, img *image.NRGBA, want []uint16) {
	t.Helper()
	seen := map[string]uint16{}
	for k, v := range want {
		c := fmt.Sprint(img.NRGBAAt(k%30, k/30))
		if old, known := seen[c]; known && old != v {
			t.Fatalf("values %d and %d are %s", old, v, c)
		}
		seen[c] = v
	}
	if len(seen) != 3 {
		t.Errorf("%d colours of 3 values", len(seen))
	}
}

// TestClassesFarApart: of masks whose values do not fit 100 bins the page has a histogram, and pictures in colours.
func TestClassesFarApart(t *testing.T) {
	dir := t.TempDir()
	mask := make([]uint16, 600)
	for k := range mask {
		mask[k] = []uint16{0, 200, 254}[k/11%3]
	}
	write(t, filepath.Join(dir, "a.tif"), tiff.TOGOptions{Shape: [3]int{1, 20, 30}, DType: chunk.Uint8}, mask)
	_, page := pageOf(t, Options{Source: dir})
	if len(page.all("div", "bar")) != 0 || len(page.all("svg", "hist")) != 1 {
		t.Error("no histogram")
	}
	checkMask(t, decode(t, page.all("img", "")[0]), mask)
}

// TestClassesAreNotOfImages: an image of one band with many values is not shown as a mask.
func TestClassesAreNotOfImages(t *testing.T) {
	dir := t.TempDir()
	samples := make([]uint16, 600)
	for k := range samples {
		samples[k] = uint16(k * 40)
	}
	write(t, filepath.Join(dir, "a.tif"), tiff.TOGOptions{Shape: [3]int{1, 20, 30}, DType: chunk.Uint16}, samples)
	r, page := pageOf(t, Options{Source: dir})
	if r.Fields[0].Mask || len(page.all("div", "bar")) != 0 || len(page.all("svg", "hist")) == 0 {
		t.Error("it is shown as a mask")
	}
}

var coordinates = regexp.MustCompile(`-?[0-9]+\.?[0-9]*`)

func floats(t *testing.T, d string) (v []float64) {
	t.Helper()
	for _, s := range coordinates.FindAllString(d, -1) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		v = append(v, f)
	}
	return v
}

// TestHistogramsAreDrawnInPlace: on an axis from the first edge to the last, the lines stand at the percentiles, and
// the area is as high as the counts.
func TestHistogramsAreDrawnInPlace(t *testing.T) {
	dir, _, _ := pair(t, 4)
	r, page := pageOf(t, Options{Source: dir, Fields: pairFields()})
	figures := field(t, page, "image").all("div", "histograms")[0].all("figure", "")
	if len(figures) != 2 {
		t.Fatalf("%d histograms", len(figures))
	}
	for i, f := range figures {
		band := r.Fields[0].Stats.Bands[i]
		box := floats(t, f.all("svg", "hist")[0].attr("viewBox"))
		low, high := band.Histogram.Edges[0], band.Histogram.Edges[100]
		for name, class := range map[string]string{"2.5": "p2-5", "50": "p50", "98.5": "p98-5"} {
			x, want := floats(t, f.all("path", class)[0].attr("d"))[0], band.Percentiles[name]
			if got := low + x/box[2]*(high-low); math.Abs(got-want) > (high-low)/500 {
				t.Errorf("line %s of band %d is at %v, want %v", class, i, got, want)
			}
		}
		// The area begins at the lower left corner, and has two points for each bin.
		area := floats(t, f.all("path", "area")[0].attr("d"))
		most := float64(slices.Max(band.Histogram.Counts))
		for bin, n := range band.Histogram.Counts {
			if got := (1 - area[3+4*bin]/box[3]) * most; math.Abs(got-float64(n)) > 0.01*most {
				t.Errorf("bin %d of band %d is %v high, want %d", bin, i, got, n)
			}
		}
	}
}

// TestHistogramsWithoutOutliers: a few values far away do not squeeze all others into one bar.
func TestHistogramsWithoutOutliers(t *testing.T) {
	counts := make([]uint64, 100)
	counts[0], counts[40], counts[50], counts[99] = 2, 5000, 5000, 1
	if first, last := focus(counts); first != 40 || last != 51 {
		t.Errorf("bins %d to %d", first, last)
	}
	for _, counts := range [][]uint64{{0}, {0, 0, 0}, {7}, {1, 1, 1}} {
		if first, last := focus(counts); first < 0 || last <= first || last > len(counts) {
			t.Errorf("%v: bins %d to %d", counts, first, last)
		}
	}
}

// TestHostileNames: names show as plain text, whatever they contain, and have no effect (see
// standsAlone).
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	names := []string{
		`<script>alert(1)<`, `"onload="alert(1)`, `'><img src=x onerror=alert(1)>.b`,
		"a\x1b[31m\n\u202egnp", "&lt;b&gt;{{.}}", "\xff\xfe",
	}
	for _, n := range names {
		write(t, filepath.Join(dir, n+".tif"), tiff.TOGOptions{
			Shape: [3]int{2, 16, 16}, DType: chunk.Uint8,
			BandNames: []string{`</td><script src="http://h/x">`, "]]>" + `javascript:alert(1)`},
		}, make([]uint16, 512))
	}
	_, page := pageOf(t, Options{
		Source: dir, Title: `</title><script>1</script>`, Fields: []loader.Field{{Name: `<svg onload=x>`}},
	})
	shown := page.all("span", "id")
	if len(shown) != len(names) {
		t.Fatalf("%d chips", len(shown))
	}
	ids := texts(shown)
	for _, want := range []string{
		names[0] + ".tif", names[1] + ".tif", names[2] + ".tif",
		"a [31m gnp.tif", names[4] + ".tif", "�.tif",
	} {
		if !slices.Contains(ids, want) {
			t.Errorf("no %q in %q", want, ids)
		}
	}
	if got := page.all("title", "")[0].text(); got != `</title><script>1</script>` {
		t.Errorf("title %q", got)
	}
	got := texts(page.all("section", "field")[0].all("tbody", "")[0].all("th", ""))
	if got[0] != `</td><script src="http://h/x">` {
		t.Errorf("bands %q", got)
	}
}

// FuzzText: no text escapes from its place in the page.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "a", `"'><script>`, "</style>", "\x00", "{{",
		"<!--", "]]>", "javascript:", "\u2028", "\xff", "&#60;",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &Report{
			Title: s, Source: "from " + s, Generator: s, Fingerprint: "00",
			Samples: 1, Chips: []Chip{{ID: s, Error: s, Values: []Value{{s, s}}}},
		}
		r.Warnings = []Warning{{s, []string{s}}}
		r.Fields = []Field{{Name: s, Kind: catalog.Text}}
		r.Fields[0].count(catalog.Value{Text: s})
		before := parse(t, r)
		r.Title, r.Source, r.Generator, r.Fields[0].Name, r.Chips[0].ID = "a", "b", "c", "d", "e"
		n, m := len(before.all("", "")), len(parse(t, r).all("", ""))
		if s != "" && s == clean(s) && strings.TrimSpace(s) != "" && n != m {
			t.Errorf("%d elements, %d with harmless names", n, m)
		}
	})
}

func warnings(page node) string { return strings.Join(texts(page.all("div", "warning")), "\n") }

// TestWarnings: each problem has a warning that names its files.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	chip := make([]uint16, 3*256)
	for k := range chip {
		chip[k] = uint16(k)
	}
	o := tiff.TOGOptions{Shape: [3]int{3, 16, 16}, DType: chunk.Uint16, Geo: utm(500000, 4600000)}
	write(t, filepath.Join(dir, "a.tif"), o, chip)
	south := o
	south.Geo.GeoKeys = slices.Clone(south.Geo.GeoKeys)
	south.Geo.GeoKeys[15], south.Geo.EPSG = 32733, 32733
	write(t, filepath.Join(dir, "b.tif"), south, chip)
	wide := o
	wide.Shape = [3]int{3, 8, 32}
	wide.NoData = "5"
	write(t, filepath.Join(dir, "c.tif"), wide, chip)
	other := o
	other.Shape, other.Geo = [3]int{1, 16, 48}, tiff.Geo{}
	write(t, filepath.Join(dir, "d.tif"), other, chip)
	if err := os.WriteFile(filepath.Join(dir, "e.tif"), []byte("II*\x00 not a TIFF"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, page := pageOf(t, Options{Source: dir})
	text := warnings(page)
	for _, want := range []string{
		"2 samples cannot be read", "sample 4:", "e.tif", "sample 3:",
		"1 bands of uint16", "different shapes", "3 × 16 × 16 uint16: 2 assets",
		"3 × 8 × 32 uint16: 1 asset", "different CRSs", "EPSG:32633: 2 assets",
		"EPSG:32733: 1 asset", "different nodata values", "none: 1 asset",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if r.Skipped != 2 || r.Fields[0].Stats.Bands[0].Count+r.Fields[0].Stats.Bands[0].NoData != 3*256 {
		t.Errorf("%d skipped, %d measured", r.Skipped, r.Fields[0].Stats.Bands[0].Count)
	}
	if n := len(page.all("figure", "chip")); n != 5 {
		t.Errorf("%d chips", n)
	}
	if n := len(page.all("span", "error")); n != 1 {
		t.Errorf("%d chips with an error", n)
	}
}

// TestQuietWithoutFaults: a dataset without problems has no warning.
func TestQuietWithoutFaults(t *testing.T) {
	dir, _, _ := pair(t, 3)
	_, page := pageOf(t, Options{Source: dir, Fields: pairFields()})
	if w := warnings(page); w != "" {
		t.Errorf("warnings: %s", w)
	}
}

// TestOddDatasets: odd datasets have a page too.
func TestOddDatasets(t *testing.T) {
	dir := t.TempDir()
	chip := make([]uint16, 256)
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	if err := os.MkdirAll(at("empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, at("nodata", "a.tif"), tiff.TOGOptions{Shape: [3]int{1, 16, 16}, DType: chunk.Uint16, NoData: "0"}, chip)
	write(t, at("flat", "a.tif"), tiff.TOGOptions{Shape: [3]int{1, 16, 16}, DType: chunk.Uint16}, chip)
	write(t, at("complex", "a.tif"), tiff.TOGOptions{
		Shape: [3]int{1, 8, 16}, DType: chunk.ComplexInt16, Predictor: chunk.NoPredictor,
	}, chip)
	write(t, at("first", "b.tif"), tiff.TOGOptions{Shape: [3]int{1, 16, 16}, DType: chunk.Uint16}, chip)
	if err := os.MkdirAll(at("none"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{at("first", "a.tif"), at("none", "a.tif")} {
		if err := os.WriteFile(broken, []byte("II*\x00"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := os.WriteFile(at("t.csv"),
		[]byte("image,label,score\nnodata/a.tif,<b>,1.5\nflat/a.tif,x,\nflat/a.tif,x,nan\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("l.csv"), []byte("label\nx\ny\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	columns := []loader.Field{{Name: "image"}, {Name: "label"}, {Name: "score"}}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Source: at("empty")}, "The dataset has no samples."},
		{Options{Source: at("complex")}, "is not measured"},
		{Options{Source: at("first")}, "1 sample cannot be read"},
		{Options{Source: at("none")}, "1 sample cannot be read"},
		{Options{Source: at("t.csv"), Fields: columns}, "<b>"},
		{Options{Source: at("l.csv"), Fields: columns[1:2]}, "no raster"},
	} {
		_, page := pageOf(t, c.o)
		if text := page.all("main", "")[0].text(); !strings.Contains(text, c.want) {
			t.Errorf("%s: no %q in %s", c.o.Source, c.want, text)
		}
	}
	_, page := pageOf(t, Options{Source: at("t.csv"), Fields: columns})
	if text := field(t, page, "label").text(); !strings.Contains(text, "x (2); <b> (1)") {
		t.Errorf("labels: %s", text)
	}
	text := field(t, page, "score").text()
	if !strings.Contains(text, "2, 1 missing") || !strings.Contains(text, "1.5 to 1.5") {
		t.Errorf("scores: %s", text)
	}
}

// TestSizesOfMembersAndStacks: a raster in a container counts with its own bytes, and a stack with those of its parts.
func TestSizesOfMembersAndStacks(t *testing.T) {
	container := filepath.Join("..", "..", "testdata", "coast", "coast.tacozip")
	r, _ := pageOf(t, Options{Source: container, Fields: []loader.Field{{Name: "image", Column: "s2/img.tif"}}})
	d, err := taco.Open(t.Context(), &source.Files{}, []string{container}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var want int64
	for e, err := range d.Leaves(t.Context(), true) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Path, "/s2/img.tif") {
			want += e.Size
		}
	}
	if got := r.Fields[0].Bytes; want == 0 || got != want {
		t.Errorf("%d bytes of members, want %d", got, want)
	}
	dir, _, _ := pair(t, 2)
	stack := loader.Field{Name: "both", Patterns: []string{"images/{id}.tif", "images/{id}.tif"}}
	whole, _ := pageOf(t, Options{Source: dir, Fields: pairFields()})
	r, _ = pageOf(t, Options{Source: dir, Fields: []loader.Field{stack}})
	if got, want := r.Fields[0].Bytes, 2*whole.Fields[0].Bytes; got != want {
		t.Errorf("%d bytes of stacks, want %d", got, want)
	}
}

// TestLargeAssetsAreShownInPart: an asset above MaxBytes is shown by a window from its middle.
func TestLargeAssetsAreShownInPart(t *testing.T) {
	dir := t.TempDir()
	const h, w = 64, 96
	samples := make([]uint16, h*w)
	for k := range samples {
		samples[k] = uint16(k%w*100 + k/w) // tells where a sample stands
	}
	write(t, filepath.Join(dir, "a.tif"), tiff.TOGOptions{Shape: [3]int{1, h, w}, DType: chunk.Uint16}, samples)
	_, page := pageOf(t, Options{Source: dir, MaxBytes: 32 * 32 * 2})
	img := page.all("img", "")[0]
	if img.attr("width") != "32" || img.attr("height") != "32" ||
		!strings.Contains(img.attr("title"), "32 × 32 pixels from the middle of 64 × 96") {
		t.Errorf("a picture of %s by %s: %q", img.attr("width"), img.attr("height"), img.attr("title"))
	}
	p := decode(t, img)
	if a, b := p.NRGBAAt(0, 0).R, p.NRGBAAt(31, 31).R; a != 0 || b != 255 {
		t.Errorf("from %d to %d", a, b)
	}
}

func TestMakeRefuses(t *testing.T) {
	dir, _, _ := pair(t, 1)
	for name, o := range map[string]Options{
		"nowhere": {Source: filepath.Join(dir, "none")},
		"column":  {Source: dir, Fields: []loader.Field{{Name: "a", Column: "b"}}},
	} {
		if _, err := Make(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, Options{Source: dir, Fields: pairFields()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestSamePage: a page depends on the dataset and the options only, not on the number of workers.
func TestSamePage(t *testing.T) {
	dir, _, _ := pair(t, 6)
	var pages [2]bytes.Buffer
	for i := range pages {
		r, err := Make(t.Context(), Options{
			Source: dir, Fields: pairFields(), Loader: loader.Options{Workers: 1 + 3*i},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.WriteHTML(&pages[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(pages[0].Bytes(), pages[1].Bytes()) {
		t.Error("two pages differ")
	}
}

// TestProgressEnds: every step that begins also ends.
func TestProgressEnds(t *testing.T) {
	dir, _, _ := pair(t, 3)
	last := map[string][2]int64{}
	_, err := Make(t.Context(), Options{
		Source: dir, Fields: pairFields(),
		Progress: func(step string, done, total int64) { last[step] = [2]int64{done, total} },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"headers", "measuring", "chips"} {
		if l := last[step]; l[0] != 3 || l[1] != 3 {
			t.Errorf("%s ended at %v", step, l)
		}
	}
}

// TestCorpus: testdata, with all kinds of files and some broken ones, has a page.
func TestCorpus(t *testing.T) {
	race.SkipCovered(t)
	for _, dir := range []string{
		"raster", filepath.Join("raster", "tog"),
		filepath.Join("raster", "rumi-v1"), filepath.Join("raster", "bad"),
	} {
		r, page := pageOf(t, Options{Source: filepath.Join(corpus.Testdata(t), dir)})
		if n := len(page.all("figure", "chip")); int64(n) != min(r.Samples, 18) {
			t.Errorf("%s: %d chips of %d samples", dir, n, r.Samples)
		}
	}
}

// TestColoursByName: bands whose names say that they are red, green and blue are drawn so, wherever they are.
func TestColoursByName(t *testing.T) {
	for _, c := range []struct {
		names []string
		red   int // the band that is drawn red
	}{
		{[]string{"B02", "B03", "B04", "B08"}, 2},
		{[]string{"NIR", "Blue (490 nm)", "green", "RED"}, 3},
		{[]string{"B08", "B04", "B03", "B11"}, 0},
		{nil, 0},
	} {
		const side = 16
		red := c.red
		samples := make([]uint16, 4*side*side)
		for i := range side * side {
			samples[red*side*side+i] = uint16(i % side) // brighter to the right
			for b := range 4 {
				if b != red {
					samples[b*side*side+i] = uint16(side - i%side)
				}
			}
		}
		path := filepath.Join(t.TempDir(), "a.tif")
		write(t, path, tiff.TOGOptions{Shape: [3]int{4, side, side}, DType: chunk.Uint8, BandNames: c.names}, samples)
		r, err := Make(t.Context(), Options{Source: path})
		if err != nil {
			t.Fatal(err)
		}
		picture := r.Chips[0].Pictures[0]
		if len(c.names) > 0 && !strings.HasPrefix(picture.Bands, c.names[red]+", ") {
			t.Errorf("%q: the picture shows %s", c.names, picture.Bands)
		}
		p, err := png.Decode(bytes.NewReader(picture.PNG))
		if err != nil {
			t.Fatal(err)
		}
		left, right := color.NRGBAModel.Convert(p.At(0, 0)).(color.NRGBA),
			color.NRGBAModel.Convert(p.At(side-1, 0)).(color.NRGBA)
		if left.R >= right.R || left.G <= right.G || left.B <= right.B {
			t.Errorf("%q: left is %v, right %v: red has to grow to the right", c.names, left, right)
		}
	}
}
