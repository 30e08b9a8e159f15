package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/grpc/server"
)

// panel is a chart of the dashboard, or a row that stands above some.
type panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"` // "timeseries" or "row"
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	Position    position     `json:"gridPos"`
	Datasource  *datasource  `json:"datasource,omitempty"`
	Targets     []target     `json:"targets,omitempty"`
	Fields      *fieldConfig `json:"fieldConfig,omitempty"`
	Options     *options     `json:"options,omitempty"`
	Collapsed   *bool        `json:"collapsed,omitempty"` // of a row
	Panels      []panel      `json:"panels,omitempty"`    // of a row that is collapsed
}

type position struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type target struct {
	ID     string `json:"refId"`
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
}

type fieldConfig struct {
	Defaults  defaults `json:"defaults"`
	Overrides []any    `json:"overrides"`
}

type defaults struct {
	Unit   string `json:"unit"`
	Min    int    `json:"min"`
	Custom custom `json:"custom"`
}

type custom struct {
	Fill     int      `json:"fillOpacity"`
	Stacking stacking `json:"stacking"`
}

type stacking struct {
	Mode  string `json:"mode"`
	Group string `json:"group"`
}

type options struct {
	Tooltip map[string]string `json:"tooltip"`
}

var prometheus = &datasource{"prometheus", "${datasource}"}

// answers are the charts of the first row: the questions that `chaski top` answers.
var answers = []panel{
	chart("Is training bound by data?", "The part of their time that ranks wait for batches.", "percentunit", false,
		`sum by (rank) (rate(chaski_rank_wait_seconds_total[$__rate_interval])) / (`+
			`sum by (rank) (rate(chaski_rank_wait_seconds_total[$__rate_interval])) + `+
			`sum by (rank) (rate(chaski_rank_step_seconds_total[$__rate_interval])))`, "rank {{rank}}"),
	chart("Which stage?", "What streams wait for; sending is beside it. Only while ranks wait does it cost anything.",
		"s", true, `sum by (stage) (rate(chaski_server_wait_seconds_total[$__rate_interval]))`, "{{stage}}",
		`sum(rate(chaski_server_send_seconds_total[$__rate_interval]))`, "send"),
	chart("Which rank?", "Mean wait for a batch.", "s", false,
		`sum by (rank) (rate(chaski_rank_wait_seconds_total[$__rate_interval])) / `+
			`sum by (rank) (rate(chaski_rank_batches_total[$__rate_interval]))`, "rank {{rank}}"),
	chart("Step", "Mean time between two batches.", "s", false,
		`sum by (rank) (rate(chaski_rank_step_seconds_total[$__rate_interval])) / `+
			`sum by (rank) (rate(chaski_rank_batches_total[$__rate_interval]))`, "rank {{rank}}"),
}

// chart returns a panel. Queries and legends take turns.
func chart(title, description, unit string, stacked bool, queries ...string) panel {
	p := panel{Type: "timeseries", Title: title, Description: description, Datasource: prometheus,
		Options: &options{map[string]string{"mode": "multi", "sort": "desc"}},
		Fields: &fieldConfig{Overrides: []any{}, Defaults: defaults{Unit: unit,
			Custom: custom{Fill: 10, Stacking: stacking{"none", "A"}}}}}
	if stacked {
		p.Fields.Defaults.Custom.Stacking.Mode = "normal"
	}
	for i := 0; i < len(queries); i += 2 {
		p.Targets = append(p.Targets, target{string(rune('A' + i/2)), queries[i], queries[i+1]})
	}
	return p
}

// chartOf returns the chart of one metric: the rate of a counter, a gauge as it is, the 95th percentile of a histogram.
func chartOf(m server.Metric) panel {
	unit, legend, by := "short", "{{instance}}", "instance"
	if m.Label != "" {
		legend, by = "{{"+m.Label+"}}", m.Label
	}
	title := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(m.Name, "chaski_"), "_total"), "_", " ")
	switch {
	case strings.Contains(m.Name, "_seconds"):
		unit = "s"
	case strings.Contains(m.Name, "_bytes"):
		unit = "bytes"
	}
	switch m.Type {
	case "counter":
		if unit == "bytes" {
			unit = "Bps"
		}
		return chart(title+", a second", m.Help, unit, false,
			fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", by, m.Name), legend)
	case "histogram":
		return chart(title+", 95th percentile", m.Help, unit, false, fmt.Sprintf(
			"histogram_quantile(0.95, sum by (le, instance) (rate(%s_bucket[$__rate_interval])))", m.Name), legend)
	}
	return chart(title, m.Help, unit, false, m.Name, legend)
}

// panels returns the rows: the answers, and below them a collapsed row with a chart of each metric of a group.
func panels(list []server.Metric) (all []panel) {
	const width, height, across = 12, 8, 2 // of Grafana's 24 columns
	id, y := 0, 0
	place := func(ps []panel) []panel {
		for i := range ps {
			id++
			ps[i].ID, ps[i].Position = id, position{height, width, i % across * width, y + i/across*height}
		}
		return ps
	}
	all = place(slices.Clone(answers))
	y += (len(answers) + across - 1) / across * height
	collapsed := true
	for _, group := range []string{"rank", "server", "cache"} {
		id++
		row := panel{ID: id, Type: "row", Title: "Metrics chaski_" + group, Collapsed: &collapsed,
			Position: position{1, across * width, 0, y}}
		for _, m := range list {
			if strings.HasPrefix(m.Name, "chaski_"+group+"_") {
				row.Panels = append(row.Panels, chartOf(m))
			}
		}
		y++
		row.Panels = place(row.Panels)
		all = append(all, row)
	}
	return all
}

// boardJSON returns the dashboard, as Grafana imports it.
func boardJSON(list []server.Metric) ([]byte, error) {
	all := panels(list)
	if err := checkQueries(list, all); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(map[string]any{
		"title": "chaski", "uid": "chaski", "tags": []string{"chaski"}, "schemaVersion": 39, "editable": true,
		"refresh": "10s", "time": map[string]string{"from": "now-1h", "to": "now"}, "panels": all,
		"templating": map[string]any{"list": []any{map[string]any{
			"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus",
		}}},
	}, "", "  ")
	return append(b, '\n'), err
}

var metricName = regexp.MustCompile(`chaski_[a-z0-9_]+`)

// checkQueries returns an error unless queries name metrics of the list alone, and all of them.
func checkQueries(list []server.Metric, all []panel) error {
	charted := map[string]bool{}
	for _, p := range all {
		for _, one := range append(p.Panels, p) {
			for _, t := range one.Targets {
				for _, name := range metricName.FindAllString(t.Expr, -1) {
					charted[name] = true
				}
			}
		}
	}
	for _, m := range list {
		name := m.Name
		if m.Type == "histogram" {
			name += "_bucket"
		}
		if !charted[name] {
			return fmt.Errorf("%s is in no chart", name)
		}
		delete(charted, name)
	}
	for name := range charted {
		return fmt.Errorf("a chart asks for %s, which is not in the list", name)
	}
	return nil
}
