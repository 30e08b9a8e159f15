package client

import (
	"context"
	"time"
)

// SetLookUp replaces the search for the addresses of names, and how often it is done, until the function that it
// returns is called.
func SetLookUp(f func(context.Context, string) ([]string, error), every time.Duration) (restore func()) {
	host, often := lookUpHost, lookEvery
	lookUpHost, lookEvery = f, every
	return func() { lookUpHost, lookEvery = host, often }
}
