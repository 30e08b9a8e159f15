package bind

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// TestWordsOfSignatures: a function whose signature has a word without a type is refused when it is added, unless it
// binds its arguments itself.
func TestWordsOfSignatures(t *testing.T) {
	library := &Library{Functions: map[string]*Function{}}
	bound := Define("f(value) g", "", sql.Double, nil).Bound((*Binder).WrongArguments)
	library.Add(bound)
	library.Add(Define("h(x[, count])", "", sql.Double, nil))
	if library.Functions["g"] != bound || library.Functions["h"] == nil {
		t.Error("functions are not found by their names")
	}
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "k(value)") {
			t.Errorf("panic %q", said)
		}
	}()
	library.Add(Define("k(value)", "", sql.Double, nil))
}
