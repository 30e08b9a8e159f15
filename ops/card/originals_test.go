package card_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/ops/card"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
)

// TestOriginalsReadCards: mlcroissant finds no error in a card and reads the rows of level 0 out of the container, and
// the schemas of pystac find none in the collection. CHASKI_ORACLE_PYTHON_TACO is a Python with both.
func TestOriginalsReadCards(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_TACO")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_TACO names no Python with mlcroissant and pystac")
	}
	const name = "coast.tacozip"
	zip, err := os.ReadFile(filepath.Join("../../testdata/coast", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(name, zip) // the card names it by a relative path
	d, err := taco.Open(t.Context(), &source.Files{}, []string{filepath.Join(dir, name)}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := card.New(t.Context(), d, card.Options{Name: name, Link: name, File: name, ZIP: true, Year: 2026,
		SHA256: func() (string, error) { return fmt.Sprintf("%x", sha256.Sum256(zip)), nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"croissant", "stac"} {
		b, err := c.Write(form)
		if err != nil {
			t.Fatal(err)
		}
		write(form+".json", b)
	}
	out, err := exec.CommandContext(t.Context(), python, "testdata/read_cards.py", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
