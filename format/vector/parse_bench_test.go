package vector

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/source/openers"
)

// BenchmarkLabels reads texts of 20,000 objects in the formats of labels, and tells the processor's time for each.
func BenchmarkLabels(b *testing.B) {
	const objects = 20_000
	for _, c := range []struct {
		name, head string
		o          Options
		line       func(i int) string
	}{
		{"yolo.txt", "", Options{OneImage: true, Class: true}, func(i int) string {
			return fmt.Sprintf("%d 0.%d 0.%d 0.0125 0.025", i%15, 1000+i%8000, 2000+i%7000)
		}},
		{"outlines.txt", "", Options{OneImage: true, Class: true}, func(i int) string {
			x := 1000 + i%8000
			return fmt.Sprintf("%d 0.%d 0.2 0.%d 0.2 0.%d 0.25 0.%d 0.25", i%15, x, x+500, x+500, x)
		}},
		{"dota.txt", "imagesource:GoogleEarth\ngsd:0.1\n", Options{OneImage: true, Class: true}, func(i int) string {
			return fmt.Sprintf("%d.0 20.0 %d.0 21.0 %d.0 41.0 %d.0 40.0 ship %d", i, i+10, i+9, i-1, i%2)
		}},
		{"kitti.txt", "", Options{OneImage: true, Class: true}, func(i int) string {
			return fmt.Sprintf("Car 0.00 0 -1.57 %d.5 20.25 %d.75 41.5 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59", i, i+10)
		}},
		{"boxes.csv", "image,xmin,ymin,xmax,ymax,label\n", Options{}, func(i int) string {
			return fmt.Sprintf("images/%d.jpg,%d,20,%d,41,ship", i/20, i, i+10)
		}},
		{"via.csv", "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes," +
			"region_attributes\n", Options{Column: "type"}, func(i int) string {
			return fmt.Sprintf(`%d.jpg,100,"{}",20,%d,"{""name"":""rect"",""x"":%d,""y"":20,""width"":10,`+
				`""height"":21}","{""type"":""ship""}"`, i/20, i%20, i)
		}},
		{"outlines.csv", "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes," +
			"region_attributes\n", Options{Column: "type"}, func(i int) string {
			return fmt.Sprintf(`%d.jpg,100,"{}",20,%d,"{""name"":""polygon"",""all_points_x"":[%d,%d,30,20],`+
				`""all_points_y"":[1,2,30,%d]}","{""type"":""ship""}"`, i/20, i%20, i, i+10, i+20)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var text strings.Builder
			text.WriteString(c.head)
			for i := range objects {
				text.WriteString(c.line(i) + "\n")
			}
			path := filepath.Join(b.TempDir(), c.name)
			if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
				b.Fatal(err)
			}
			from := cputime.Used()
			for b.Loop() {
				l, err := Open(b.Context(), &openers.Files{}, path, c.o)
				if err != nil {
					b.Fatal(err)
				}
				_ = l.Close()
			}
			b.ReportMetric(float64((cputime.Used()-from).Nanoseconds())/float64(b.N)/objects, "cpu-ns/object")
		})
	}
}
