//go:build !race

package cli

// raceDetector says that the tests run under the race detector.
const raceDetector = false
