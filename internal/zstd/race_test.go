//go:build race

package zstd_test

// raceDetector says that the race detector is on: allocations then count for more.
const raceDetector = true
