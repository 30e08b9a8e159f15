package survey_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// outage opens local files. One call of Open or ReadAt fails: the one that makes left 0.
type outage struct {
	files openers.Files
	left  atomic.Int64
}

func (o *outage) Open(ctx context.Context, name string) (source.Reader, error) {
	if o.left.Add(-1) == 0 {
		return nil, errNetwork
	}
	r, err := o.files.Open(ctx, name)
	return outageReader{r, o}, err
}

type outageReader struct {
	source.Reader
	outage *outage
}

func (r outageReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	if r.outage.left.Add(-1) == 0 {
		return errNetwork
	}
	return r.Reader.ReadAt(ctx, p, off)
}

func asJSON(t *testing.T, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOutages: whichever read of a survey fails, the survey ends with that error or finds the same without it, whatever
// its policy for bad samples.
func TestOutages(t *testing.T) {
	data := corpus.Testdata(t)
	surveys := map[string]func(o loader.Options) (any, error){}
	measure := func(name string, s loader.Spec, c survey.WeightOptions) {
		s.BatchSize = 1
		surveys["statistics of "+name] = func(o loader.Options) (any, error) {
			return survey.Stats(t.Context(), s, o, nil)
		}
		surveys["weights of "+name] = func(o loader.Options) (any, error) {
			return nil, survey.Weights(t.Context(), io.Discard, s, o, c, nil, nil)
		}
	}
	measure("files to skip", loader.Spec{Source: filepath.Join(data, "masks"), BadSamples: spec.BadSkip,
		Fields: []loader.Field{{Name: "image", Bands: []int{0}}}}, survey.WeightOptions{})
	for _, name := range []string{"alpha/rgba.tif", "beside/pam.tif", "beside/mask.tif", "beside/world.png",
		"extras/scaled.tif", "overviews/both.tif", "vrt/masked.vrt",
		"raster/rumi-3/unit-t-b-y-x-0.rumi"} {
		surveys["a description of "+name] = func(o loader.Options) (any, error) {
			return survey.Describe(t.Context(), filepath.Join(data, name), nil, o)
		}
	}
	for name, survey := range surveys {
		opener := &outage{}
		o := loader.Options{Opener: &openers.Mux{Files: opener}, Workers: 1}
		whole, err := survey(o)
		if err != nil {
			t.Fatal(name, err)
		}
		want, calls := asJSON(t, whole), -opener.left.Load()
		for call := range calls {
			opener.left.Store(call + 1)
			got, err := survey(o)
			if !errors.Is(err, errNetwork) && (err != nil || !bytes.Equal(asJSON(t, got), want)) {
				t.Errorf("%s: call %d of %d fails: %v, %s, want %s", name, call, calls, err, asJSON(t, got), want)
			}
		}
	}
}
