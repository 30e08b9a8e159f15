package crash

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

//go:noinline
func tripsOver(b []byte, i int) byte { return b[i] }

func TestPanicBecomesOneError(t *testing.T) {
	before := Count()
	err := fmt.Errorf("sample 3: %w", Guard(func() error {
		tripsOver(make([]byte, 3), 5)
		return nil
	})())
	var e *Error
	if !errors.As(err, &e) || !Is(err) || Count() != before+1 {
		t.Fatalf("%v, %d panics", err, Count()-before)
	}
	if !strings.Contains(err.Error(), "index out of range [5] with length 3") ||
		!bytes.Contains(e.Stack, []byte("tripsOver")) {
		t.Errorf("%v\n%s", err, e.Stack)
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	Report(log, err)
	Report(log, err)
	if n := strings.Count(out.String(), "tripsOver"); n == 0 || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("the stack must be logged once, on one line:\n%s", &out)
	}
}

func TestErrorsPass(t *testing.T) {
	before, want := Count(), errors.New("plain")
	if err := Call(func() error { return want }); !errors.Is(err, want) || Is(err) || Count() != before {
		t.Error(err)
	}
	var out bytes.Buffer
	if Report(slog.New(slog.NewTextHandler(&out, nil)), want); out.Len() > 0 {
		t.Error(out.String())
	}
}

func deep(n int) int {
	if n == 0 {
		panic(strings.Repeat("x", 1<<20))
	}
	return deep(n-1) + 1
}

func TestErrorIsBounded(t *testing.T) {
	var e *Error
	err := Call(func() error { deep(10_000); return nil })
	if !errors.As(err, &e) || len(e.Stack) > maxStack || len(e.Text) > maxText {
		t.Errorf("a stack of %d bytes, a text of %d", len(e.Stack), len(e.Text))
	}
}
