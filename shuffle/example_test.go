package shuffle_test

import (
	"fmt"
	"log"

	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// Random windows of 64 by 64 pixels of five assets, two of each in an epoch: what the first step of rank 1 of 2 reads.
func ExamplePlan() {
	plan, err := shuffle.NewPlan(shuffle.Spec{Seed: 7, Shuffle: true, Source: shuffle.Source{Dataset: &shuffle.Dataset{
		Items: 5, Sampler: shuffle.Sampler{Kind: shuffle.RandomWindow{}, PerItem: 2, H: 64, W: 64},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	ticket := steps.StepTicket(0, 0, 4, 1, 2)
	for k := range ticket.Rows() {
		draw := plan.At(0, ticket.Position(k, plan.Len()))
		window, _ := plan.Window(&draw, 512, 512, nil)
		fmt.Println("asset", draw.Row, "window", window)
	}
	// Output:
	// asset 3 window {207 325 64 64}
	// asset 0 window {196 194 64 64}
}
