// Package testfile writes and reads whole files for tests.
package testfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Write writes a file, and the directories above it.
func Write(t testing.TB, path string, b []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = os.WriteFile(path, b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Read returns the bytes of a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
