package card_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/chaski-eo/chaski/ops/card"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestMake: a card has the id and keywords of COLLECTION.json and the address, and a dataset card begins with YAML that
// has a licence.
func TestMake(t *testing.T) {
	files := &source.Files{}
	defer files.Close()
	path := filepath.Join(corpus.Root(t), "testdata", "coast", "coast.tacozip")
	dataset, err := taco.Open(t.Context(), files, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dataset.Close()
	var says struct {
		ID       string
		Keywords []string
	}
	if err := json.Unmarshal(dataset.Collection(), &says); err != nil {
		t.Fatal(err)
	}
	const address = "https://x.example/coast.tacozip"
	for _, form := range card.Forms {
		b, err := card.Make(t.Context(), dataset, form, address)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "\\", "") // Markdown's marks of plain text
		if form == "huggingface" {
			parts := strings.SplitN(text, "---\n", 3)
			var head map[string]any
			if err := yaml.Unmarshal([]byte(parts[1]), &head); err != nil || head["license"] == nil {
				t.Errorf("%s: head %v, %v", form, head, err)
			}
			text = parts[2]
		}
		for _, want := range append(says.Keywords, says.ID, address) {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", form, want, text)
			}
		}
	}
	if _, err := card.Make(t.Context(), dataset, "pdf", ""); err == nil || !strings.Contains(err.Error(), `"pdf"`) {
		t.Errorf("an unknown form: %v", err)
	}
}
