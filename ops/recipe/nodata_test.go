package recipe_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tiff"
)

// toBytes writes values as samples of a type, and fromBytes reads them: the test's own, with encoding/binary.
func toBytes(values []float64, d chunk.DType) (out []byte) {
	for _, v := range values {
		switch d {
		case chunk.Uint8:
			out = append(out, byte(v))
		case chunk.Int16:
			out = binary.LittleEndian.AppendUint16(out, uint16(int16(v)))
		case chunk.Uint16:
			out = binary.LittleEndian.AppendUint16(out, uint16(v))
		case chunk.Float32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
		}
	}
	return out
}

func fromBytes(b []byte, d chunk.DType) float64 {
	switch d {
	case chunk.Uint8:
		return float64(b[0])
	case chunk.Int16:
		return float64(int16(binary.LittleEndian.Uint16(b)))
	case chunk.Uint16:
		return float64(binary.LittleEndian.Uint16(b))
	case chunk.Int64:
		return float64(int64(binary.LittleEndian.Uint64(b)))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}

// TestValidPixelsStayValid: whatever the nodata values and the types of source and chips are, the chips miss what the
// source misses, other valid pixels keep their values, those with the chips' nodata value move by the least step and
// are counted, and the statistics of the run equal those of its container.
func TestValidPixelsStayValid(t *testing.T) {
	const side = 20
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	types := map[string]chunk.DType{"uint8": chunk.Uint8, "uint16": chunk.Uint16, "int16": chunk.Int16,
		"float32": chunk.Float32, "int64": chunk.Int64}
	made, refused := 0, 0
	for i := range 120 {
		from, to := pick("uint8", "uint16", "int16", "float32"), pick("", "uint8", "float32", "int64")
		bands, none, target := 1+random.IntN(4), pick("", "0", "7", "9"), pick("", "0", "7", "8", "nan")
		chips := types[from]
		if to != "" {
			chips = types[to]
		}
		if from == "float32" && to == "int64" { // the loader refuses it
			to, chips = "", chunk.Float32
		}
		if target == "nan" && chips != chunk.Float32 {
			target = "8"
		}
		values := make([]float64, bands*side*side)
		for k := range values {
			values[k] = []float64{0, 1, 6, 7, 8, 9, 50}[random.IntN(7)]
			if from == "float32" && chips == chunk.Float32 && random.IntN(9) == 0 {
				values[k] = float64(math.Nextafter32(7, 9))
			}
		}
		clip := from == "float32" && to == "uint8"
		for k := 0; clip && k < side*side; k += 1 + random.IntN(9) {
			for b := range bands { // an integer has none: it is missing
				values[b*side*side+k] = math.NaN()
			}
		}
		var mask []byte // of all bands; nil: no pixel is masked
		if random.IntN(2) == 0 {
			mask = make([]byte, side*side)
			for k := range mask {
				mask[k] = byte(min(random.IntN(4), 1))
			}
		}
		dir := t.TempDir()
		var w bytes.Buffer
		err := tiff.WriteTOG(&w, toBytes(values, types[from]), tiff.TOGOptions{Shape: [3]int{bands, side, side},
			DType: types[from], Tile: 16, Level: 1, NoData: none, Mask: mask})
		source := "."
		if i%3 == 0 && err == nil { // a member of a container begins somewhere in a file
			source = "c.tacozip"
			_, err = build.Create(t.Context(), &build.Taco{Samples: &build.Tortilla{Samples: []build.Sample{
				{ID: "s.tif", Bytes: w.Bytes()}}}, Collection: build.Collection{ID: "c", DatasetVersion: "1",
				Description: "c", Licenses: []string{"MIT"}, Providers: []map[string]any{{"name": "Ana"}},
				Tasks: []string{"other"}}}, filepath.Join(dir, source), build.Options{})
		} else if err == nil {
			err = os.WriteFile(filepath.Join(dir, "s.tif"), w.Bytes(), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		format, strict := pick("tog", "tog", "rumi", "rumi2", "rumi3"), random.IntN(3) > 0
		field := fmt.Sprintf("name: image, codec: {level: 1, format: %s, strict: %v}", format, strict)
		if to != "" {
			field += ", dtype: " + to
		}
		if clip {
			field += ", clip: true"
		}
		if target != "" {
			field += ", nodata: " + target
		}
		if random.IntN(3) == 0 {
			bands = 1
			field += ", bands: [0]"
		}
		text := fmt.Sprintf("source: %s\nwindows: {kind: grid, size: 16, pad: true}\nfields: [{%s}]\n", source, field)
		what := fmt.Sprintf("case %d: %s with nodata %q, mask %v, %d bands: %s", i, from, none, mask != nil, bands,
			field)
		out, res, err := create(t, dir, text, 2)
		if err != nil {
			// What a format cannot hold is an error too.
			if strings.Contains(err.Error(), "the field's nodata gives one") || strings.HasPrefix(format, "rumi") {
				refused++
				continue
			}
			t.Fatal(what, err)
		}
		made++
		if strict {
			compareChips(t, what, out, res, values, mask, bands, side, none, chips)
		}
	}
	if made < refused {
		t.Errorf("%d recipes made chips, %d were refused", made, refused)
	}
}

// compareChips holds the chips of a container to the values of their source.
func compareChips(t *testing.T, what, out string, res *recipe.Result, values []float64, mask []byte, bands, side int,
	none string, chips chunk.DType) {
	t.Helper()
	moved := int64(0)
	for _, corner := range [][2]int{{0, 0}, {0, 16}, {16, 0}, {16, 16}} {
		a, err := raster.Read(t.Context(), []string{fmt.Sprintf("%s::s_y%d_x%d", out, corner[0], corner[1])},
			raster.ReadOptions{Validity: true})
		if err != nil {
			t.Fatal(what, err)
		}
		nodata := metaOf(t, fmt.Sprintf("%s::s_y%d_x%d", out, corner[0], corner[1])).NoData
		for k, have := range a.Valid {
			b, y, x := k/256, corner[0]+k/16%16, corner[1]+k%16
			valid := y < side && x < side
			want := 0.0
			if valid {
				want = values[(b*side+y)*side+x]
				valid = fmt.Sprint(want) != none && want == want &&
					(mask == nil || mask[y*side+x] != 0)
			}
			if (have == 1) != valid {
				t.Fatalf("%s: sample (%d, %d, %d) of value %v has validity %d", what, b, y, x, want, have)
			}
			if !valid {
				continue
			}
			size := chips.Size()
			got := fromBytes(a.Data[k*size:], chips)
			target, err := strconv.ParseFloat(nodata, 64)
			if err != nil || want != target {
				if got != want {
					t.Fatalf("%s: sample (%d, %d, %d) is %v, want %v", what, b, y, x, got, want)
				}
				continue
			}
			moved++
			step := want - 1
			switch {
			case chips == chunk.Float32:
				step = float64(math.Nextafter32(float32(target), float32(math.Inf(-1))))
			case want == 0 && (chips == chunk.Uint8 || chips == chunk.Uint16):
				step = 1
			}
			if got != step {
				t.Fatalf("%s: sample (%d, %d, %d) is %v, want %v moved to %v", what, b, y, x, got, want, step)
			}
		}
		a.Release()
	}
	if res.Moved != moved {
		t.Errorf("%s: %d samples are counted as moved, want %d", what, res.Moved, moved)
	}
}
