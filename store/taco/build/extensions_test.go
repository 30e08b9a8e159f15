package build

import (
	"encoding/json"
	"strings"
	"testing"
)

// described returns a description that is complete but for the members of doc.
func described(t *testing.T, doc string) (*Collection, error) {
	t.Helper()
	c := &Collection{}
	const whole = `{"id":"a","dataset_version":"1","description":"d","licenses":["MIT"],"providers":[{"name":"A"}],` +
		`"tasks":["other"]}`
	if err := c.SetYAML([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	if err := c.SetYAML([]byte(doc)); err != nil {
		return c, err
	}
	return c, c.Check()
}

// TestExtensionsAreChecked: each rule of the texts about Labels, OpticalData, SplitStrategy, Publications and people,
// with the words about what breaks it.
func TestExtensionsAreChecked(t *testing.T) {
	for _, c := range [][2]string{
		{"labels: 3", "labels is 3: it must be an object with classes, description, num_classes"},
		{"labels: {clases: []}", `labels has "clases": it has classes`},
		{"labels: {description: x}", "labels:classes is missing: labels:description needs it"},
		{"labels:classes: {}", "labels:classes is {}: it must be a list"},
		{"labels:classes: [x]", `labels:classes[0] is "x": it must be an object`},
		{"labels: {classes: [{name: a, category: 0}, {category: 1}]}", "labels:classes[1].name is missing or empty"},
		{"labels: {classes: [{name: a}]}", "labels:classes[0].category is missing"},
		{"labels: {classes: [{name: a, category: 1.5}]}", "category is 1.5: it must be text or a whole number"},
		{"labels: {classes: [{name: a, category: 1}, {name: a, category: 2}]}",
			`labels:classes[1].name is "a", as of labels:classes[0]: they must differ`},
		{"labels: {classes: [{name: a, category: 1}], num_classes: 2}",
			"labels:num_classes is 2: labels:classes has 1"},
		{"optical: {bands: [{name: a}]}", "optical:sensor is missing: optical:bands needs it"},
		{"optical: {sensor: sentinel2}", `"sentinel2": it is none of aster, eo1ali,`},
		{"optical: {sensor: 'landsat8oli[B99]'}", `no band "B99": the bands are B01, B02`},
		{"optical: {sensor: 'aster[B01'}", "is not NAME or NAME[BAND, BAND]: unsupported"},
		{"optical: {sensor: x, bands: [{name: a, index: -1}]}", "index is -1: it must be a whole number, at least 0"},
		{"optical: {sensor: x, bands: [{name: a, center_wavelength: '490'}]}",
			`optical:bands[0].center_wavelength is "490": it must be a number`},
		{"optical: {sensor: 7}", "optical:sensor is 7: it must be text"},
		{"split: {strategy: Random}", `split:strategy is "Random": it must be one of random, stratified, manual,`},
		{"publications: [{doi: 10.1/x}]", "publications[0].citation is missing"},
		{"publications: [{doi: 10.1/x, citation: c, summary: [s]}]",
			`publications[0].summary is ["s"]: it must be text`},
		{"providers: [{roles: [host]}]", "providers[0] has neither name nor organization"},
		{"curators: [{name: B, email: b.org}]", `curators[0].email is "b.org": it must be an address with @`},
		{"curators: [{name: 5}]", "curators[0].name is 5: it must be text"},
		{"extent: {spatial: [0, 0, 1, 1], temporal: [2024-05-01, soon]}", `extent.temporal has "soon"`},
		{"extent: {spatial: [0, 0, 1, 1], temporal: [2024-05-01, 2023-05-01]}", "it ends before it starts"},
	} {
		if _, err := described(t, c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", c[0], err, c[1])
		}
	}
	for _, doc := range []string{
		"labels:classes: [{name: a, category: 1, description: null}, {name: b, category: 1}]\nlabels:description: null",
		"labels: null\noptical: {sensor: mine, bands: []}",
		"optical: {sensor: 'mine[red, green]'}",
		"publications: []\nsplit: {strategy: manual}",
		"curators: [{organization: B, email: b@c.org, role: host}]",
		"extent: {spatial: [170, 0, -170, 1], temporal: [2024-05-01, 2024-05-01]}",
	} {
		if _, err := described(t, doc); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// members decodes COLLECTION.json.
func membersOf(t *testing.T, doc []byte, err error) map[string]any {
	t.Helper()
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(doc, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSensorFillsBands: a sensor gets its bands, those in brackets in their order, and no others where bands are given.
// An object of an extension replaces all that there was.
func TestSensorFillsBands(t *testing.T) {
	c, err := described(t, "optical: {sensor: 'sentinel2msi[B8A, b02]'}\nlabels: {classes: [{name: a, category: x}]}")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := c.document()
	m := membersOf(t, doc, err)
	bands, _ := m["optical:bands"].([]any)
	if len(bands) != 2 || m["optical:sensor"] != "sentinel2msi" || m["optical:num_bands"] != 2.0 ||
		m["labels:num_classes"] != 1.0 {
		t.Fatalf("%v", m)
	}
	second, _ := bands[1].(map[string]any)
	if second["name"] != "B02" || second["index"] != 1.0 || second["common_name"] != "blue" {
		t.Errorf("%v", second)
	}
	if nm, _ := second["center_wavelength"].(float64); nm < 450 || nm > 510 {
		t.Errorf("blue is at %v nm", nm)
	}
	if err := c.SetYAML([]byte("optical: {sensor: mine, bands: [{name: x}]}\nlabels:classes: []")); err != nil {
		t.Fatal(err)
	}
	doc, err = c.document()
	if m = membersOf(t, doc, err); m["optical:num_bands"] != 1.0 || m["labels:num_classes"] != 0.0 {
		t.Errorf("%v", m)
	}
	if !c.unset("optical") || c.unset("optical") || c.More["optical:bands"] != nil {
		t.Errorf("%s", c.More)
	}
}
