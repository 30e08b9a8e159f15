package tog

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/extras"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// FuzzExtras: what a file says besides its samples is kept by a TOG of them, or has no place in
// one, or is an error with a kind.
func FuzzExtras(f *testing.F) {
	for _, folder := range []string{"extras", "masks", "overviews"} {
		for _, e := range corpus.Manifest(f, filepath.Join(corpus.Testdata(f), folder)) {
			f.Add(e.Bytes(f))
		}
	}
	besides, err := filepath.Glob(filepath.Join(corpus.Testdata(f), "overviews", "*.ovr"))
	if err != nil || len(besides) == 0 {
		f.Fatalf("no files of overviews: %v", err)
	}
	for _, path := range besides {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	nested := "<GDALMetadata><Item name='a' domain='xml:x'><Item>\xff</Item></Item><b/></GDALMetadata>"
	var odd bytes.Buffer
	o := Options{Shape: [3]int{1, 16, 16}, DType: chunk.Uint8, Tile: 16, GDALMetadata: nested}
	if err := Write(&odd, make([]byte, 16*16), o); err != nil {
		f.Fatal(err)
	}
	f.Add(odd.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx, bound := context.Background(), tiff.Limits{MaxChunk: 1 << 16}
		read := func(b []byte) (img *tiff.Image, e *extras.Extras, overviews []*chunk.Index, err error) {
			file, err := ifd.Open(ctx, &corpus.Mem{B: b}, bound.IFD())
			if err != nil {
				return nil, nil, nil, err
			}
			if img, err = tiff.FromFile(ctx, file, bound); err != nil {
				return nil, nil, nil, err
			}
			if overviews, err = tiff.OpenOverviews(ctx, file, img.Index, bound); err != nil {
				return nil, nil, nil, err
			}
			// The file as one of overviews, whose largest has the size of the image: it is the image.
			all, err := tiff.OpenOverviewFile(ctx, file, img.Index, bound)
			if err != nil && fault.KindOf(err) == 0 || err == nil && len(all) != len(overviews)+1 {
				t.Fatalf("%d overviews in a file with %d: %v", len(all), len(overviews), err)
			}
			e, err = extras.Read(ctx, file)
			return img, e, overviews, err
		}
		var img *tiff.Image
		var e *extras.Extras
		var overviews []*chunk.Index
		var err error
		taken.Check(t, 4*len(b), taken.FactorXML, func() { img, e, overviews, err = read(b) })
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		pixels, err := whole.Image(img.Index, b, 1<<16)
		if err != nil {
			return
		}
		o := Options{
			Shape: [3]int{img.Index.Bands, img.Index.Height, img.Index.Width},
			DType: img.Index.DType, Tile: 16, Level: 1, Tags: e.Tags,
			GDALMetadata: extras.GDALMetadata(e.Items), Photometric: e.Photometric,
			WhiteIsZero: e.WhiteIsZero, ExtraSamples: e.ExtraSamples, NoData: img.Meta.NoData,
		}
		for _, x := range overviews {
			v := Overview{Height: x.Height, Width: x.Width}
			if v.Pixels, err = whole.Image(x, b, 1<<16); err != nil {
				return
			}
			n := len(o.Overviews)
			if len(o.Overviews) == 0 || v.Height <= o.Overviews[n-1].Height && v.Width <= o.Overviews[n-1].Width {
				o.Overviews = append(o.Overviews, v)
			}
		}
		var w bytes.Buffer
		if err := Write(&w, pixels, o); err != nil {
			t.Fatal(err)
		}
		again, e2, overviews, err := read(w.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(e.Tags, func(a, b ifdwrite.Field) int { return int(a.Tag) - int(b.Tag) })
		if !slices.EqualFunc(e.Tags, e2.Tags, func(a, b ifdwrite.Field) bool { return reflect.DeepEqual(a, b) }) ||
			!slices.Equal(e.Items, e2.Items) || e.Photometric != e2.Photometric || e.WhiteIsZero != e2.WhiteIsZero ||
			len(e2.Unknown) > 0 || len(overviews) != len(o.Overviews) || again.Meta.NoData != img.Meta.NoData {
			t.Fatalf("%+v became %+v", e, e2)
		}
	})
}
