//go:build !race

package geozl

const raceDetector = false
