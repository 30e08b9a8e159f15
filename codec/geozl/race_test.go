//go:build race

package geozl

// raceDetector says that the race detector is on: allocations then count for more.
const raceDetector = true
