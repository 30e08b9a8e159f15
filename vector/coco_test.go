package vector

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// cocoText is a COCO file with outlines, runs, packed runs, a box alone, and a category without a name.
const cocoText = `{"info": {"year": 2026}, "images": [
	{"id": 1, "file_name": "a/1.png", "height": 4, "width": 6}, {"id": "x", "file_name": "1.png", "height": 2, "width": 2}],
	"annotations": [
	{"id": 1, "image_id": 1, "category_id": 2, "bbox": [1, 1, 2, 2], "segmentation": [[1, 1, 3, 1, 3, 3], [4, 0, 5, 0, 5, 1]]},
	{"id": 2, "image_id": 1, "category_id": 1, "iscrowd": 1, "segmentation": {"size": [4, 6], "counts": [1, 2, 3, 18]}},
	{"id": 3, "image_id": "x", "category_id": 9, "segmentation": {"size": [2, 2], "counts": "112"}},
	{"id": 4, "image_id": "x", "category_id": 1, "bbox": [0, 0, 1, 1]}],
	"categories": [{"id": 1, "name": "boat"}, {"id": 2, "name": "car"}]}`

// TestCoco promises images by the last parts of their paths, categories by number and by name, and the pixels of runs.
func TestCoco(t *testing.T) {
	l, err := Open(t.Context(), memory(cocoText), "f", Options{Coco: true})
	if err != nil {
		t.Fatal(err)
	}
	if l.Len() != 4 || fmt.Sprint(l.Values.Ints) != "[2 1 9 1]" {
		t.Error(l.Len(), l.Values)
	}
	for uri, c := range map[string]struct {
		h, w int
		rows string
		kind fault.Kind
	}{"/data/a/1.png": {4, 6, "[0 1]", 0}, "/data/b/1.png": {0, 0, "[]", fault.Unsupported}, "1.png": {0, 0, "[]",
		fault.Unsupported}, "s3://b/2.png": {4, 6, "[]", fault.NotFound}, "a/1.png": {6, 4, "[]", fault.Misplaced}} {
		rows, err := l.OfImage(uri, c.h, c.w)
		if fmt.Sprint(rows) != c.rows || fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, %v", uri, rows, err)
		}
	}
	for row, want := range map[uint32]string{1: "011000111111111111111111", 2: "0100"} {
		r, ok := l.Runs(row)
		got := ""
		for i := range want {
			got += map[bool]string{true: "1", false: "0"}[r.At(i%r.height, i/r.height)]
		}
		if !ok || got != want {
			t.Errorf("annotation %d: %s, want %s", row, got, want)
		}
	}
	if box, ok := l.Box(0); !ok || box != [4]float64{1, 1, 3, 3} {
		t.Error(box, ok)
	}
	if _, ok := l.Box(1); ok {
		t.Error("a crowd has a box")
	}
	named, err := Open(t.Context(), memory(cocoText), "f", Options{Coco: true, Column: "name"})
	if err != nil || fmt.Sprintf("%q", named.Values.Names) != `["" "boat" "car"]` {
		t.Error(named.Values, err)
	}
}

// TestCocoWithoutImages: an annotation that names no image is refused where it stands. It has 3 bytes of text, so a
// file of such would take 70 times its size before it is refused.
func TestCocoWithoutImages(t *testing.T) {
	for _, empty := range []string{"{}", "null", `{"image_id": null}`} {
		text := `{"annotations": [` + empty + `, 5`
		_, err := Open(t.Context(), memory(text), "f", Options{Coco: true})
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "image_id") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestCocoTwice: lists that a file has twice are refused: encoding/json would take the last one, and others the first.
func TestCocoTwice(t *testing.T) {
	for _, key := range []string{"images", "annotations", "categories"} {
		text := `{"` + key + `": [], ` + cocoText[1:]
		_, err := Open(t.Context(), memory(text), "f", Options{Coco: true})
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// FuzzCoco: files of any bytes are refused with a kind, or all their annotations are read.
func FuzzCoco(f *testing.F) {
	f.Add([]byte(cocoText))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, column := range []string{"", "name"} {
			l, err := Open(t.Context(), memory(bytes.Clone(b)), "f",
				Options{Coco: true, Column: column, MaxShapes: 1 << 12})
			if err != nil {
				if fault.KindOf(err) == 0 {
					t.Fatalf("an error without a kind: %v", err)
				}
				continue
			}
			for row := range uint32(l.Len()) {
				if _, err := l.Shape(t.Context(), row); err != nil {
					t.Fatal(err)
				}
				i := l.coco.images[l.coco.list[row].image]
				if r, ok := l.Runs(row); ok {
					r.At(0, 0)
					r.At(i.height-1, i.width-1)
					if first, last := r.Columns(); first < 0 || last >= i.width {
						t.Fatalf("columns %d to %d of %d", first, last, i.width)
					}
				}
			}
		}
	})
}

// TestUnpack promises that packed runs are those that were packed, by another way of packing them: bit by bit.
func TestUnpack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		var want []uint32
		for range rnd.IntN(12) {
			want = append(want, uint32(rnd.IntN(1<<(1+rnd.IntN(30)))))
		}
		text := ""
		for i, n := range want {
			v := int64(n)
			if i > 2 {
				v -= int64(want[i-2])
			}
			groups := 1 // as few as hold the number and its sign
			for v < -1<<(5*groups-1) || v >= 1<<(5*groups-1) {
				groups++
			}
			for k := range groups {
				c := byte(v>>(5*k)) & 31
				if k < groups-1 {
					c |= 32
				}
				text += string(rune('0' + c))
			}
		}
		got, ok := unpack(nil, text)
		if !ok || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	}
	// Without an end, not of these characters, too long, below 0 at first and as a difference.
	for _, bad := range []string{"o", "/", "p", "ooooooooo0", "@", "111@"} {
		if got, ok := unpack(nil, bad); ok {
			t.Errorf("%q: %v", bad, got)
		}
	}
}
