//go:build !race

package openzl

const raceDetector = false
