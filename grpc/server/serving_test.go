package server

import (
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
)

// TestEnginesOfAServerAreServed: the engine that a server opens has what the server asks engines for by interfaces,
// which would be left out without an error, and loader.Engine itself shows none of it to other programs.
func TestEnginesOfAServerAreServed(t *testing.T) {
	type serving interface {
		lender
		Forget(o batch.Owner)
		Wanted(t resources.Caller) bool
		Slow() ([]resources.SourceTime, []resources.RasterTime)
		MemoryBytes() int64
	}
	var engine Engine = localEngine{}
	if _, ok := engine.(serving); !ok {
		t.Error("the server does not find the methods of loader.Serving")
	}
	methods := reflect.TypeFor[serving]()
	if methods.NumMethod() != 6 {
		t.Fatalf("%d methods", methods.NumMethod())
	}
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		if _, shown := reflect.TypeFor[*loader.Engine]().MethodByName(name); shown {
			t.Errorf("loader.Engine shows %s", name)
		}
	}
}
