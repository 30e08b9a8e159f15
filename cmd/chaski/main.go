// Command chaski reads satellite-image chips, measures how fast, and serves them to training steps.
package main

import "github.com/chaski-eo/chaski/cmd/chaski/cli"

func main() { cli.Main() }
