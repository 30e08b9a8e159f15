package vector

import (
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Names that columns have in formats whose columns have no names of their own.
const (
	classColumn = "class"
	scoreColumn = "score" // of predictions
)

// named is a named format whose objects are members or elements: where they are, and where each has its coordinates,
// its class and its values. A place is a path, see pathOf; several are alternatives.
type named struct {
	name    string
	objects string
	class   string    // its column has the name of the first place; "" if the values of an object say it
	forms   []*form   // the first outline that an object has in full counts, or the first box: see choose
	values  string    // the member of an object that has its values; "": the object itself
	image   [3]string // the name, the width and the height of the image
	lacks   string    // what is wrong with an object without coordinates; "": it has no shape

	// shared is the member around the objects of an image, "." for the elements of a list; "": a file is of one image.
	shared string
	drops  string                   // the member around objects that is true where they do not count; "": all count
	path   func(name string) string // of an image by its name in the file; nil: they are equal
}

// vocFormat is XML of Pascal VOC, and XML like it.
var vocFormat = named{
	name:    "VOC XML",
	objects: "object HRSC_Object",
	class:   "name possibleresult/name Class_ID", // of FAIR1M and HRSC2016
	image: [3]string{"filename source/filename Img_FileName", "size/width Img_SizeWidth",
		"size/height Img_SizeHeight"},
	forms: []*form{
		entry("x0 y0 x1 y1", "bndbox/xmin bndbox/ymin bndbox/xmax bndbox/ymax"),
		entry("x0 y0 x1 y1", "box_xmin box_ymin box_xmax box_ymax"), // HRSC2016
		entry("outline", "points/point"),                            // FAIR1M: each point is an element
		entry("x1 y1 x2 y2 x3 y3 x4 y4", "robndbox/x_left_top robndbox/y_left_top robndbox/x_right_top "+
			"robndbox/y_right_top robndbox/x_right_bottom robndbox/y_right_bottom robndbox/x_left_bottom "+
			"robndbox/y_left_bottom"), // DIOR-R
		entry("outline", "polygon/*"), // DroneVehicle, Roboflow: x1, y1, x2, …
		entry("cx cy w h angle", "robndbox/cx robndbox/cy robndbox/w robndbox/h robndbox/angle"), // roLabelImg
		entry("cx cy w h angle", "mbox_cx mbox_cy mbox_w mbox_h mbox_ang"),                       // HRSC2016
	},
	lacks: "it has no bndbox of xmin, ymin, xmax and ymax, no robndbox, polygon or points: box says where others " +
		"have their coordinates",
}

// cocoFormat is JSON of COCO, and of SODA, whose lists refer to each other: see coco.
var cocoFormat = named{
	name:    "COCO's JSON",
	objects: "images annotations categories",
	class:   "category",
	forms:   []*form{entry("x y w h", "bbox"), entry("outline", "segmentation"), entry("outline", "poly")},
}

// jsonFormats are the other formats in JSON, by the member of a file that has their objects.
var jsonFormats = map[string]*named{
	"features": { // "xy" is of the pixels; "subtype" is the damage of a building, after the disaster
		name:    "xBD's JSON",
		objects: "features/xy",
		class:   "subtype",
		forms:   []*form{entry("outer", "wkt")},
		values:  "properties",
		image:   [3]string{"metadata/img_name", "metadata/width", "metadata/height"},
	},
	"shapes": {
		name:    "LabelMe's JSON",
		objects: "shapes",
		class:   "label",
		forms:   []*form{entry("points shape_type mask", "points shape_type mask")},
		image:   [3]string{"imagePath", "imageWidth", "imageHeight"},
		lacks:   "it has no points",
	},
	"objects": {
		name:    "Supervisely's JSON",
		objects: "objects",
		class:   "classTitle",
		forms: []*form{
			entry("points shape_type holes", "points/exterior geometryType points/interior"),
			entry("bitmap", "bitmap"),
		},
		image: [3]string{"", "size/width", "size/height"},
		lacks: "it has neither points nor a bitmap",
	},
	viaMember: {
		name:    "VIA's JSON",
		objects: viaMember + "/*/regions",
		forms:   []*form{entry("via region_attributes", "shape_attributes region_attributes")},
		image:   [3]string{viaMember + "/*/filename"},
		shared:  viaMember + "/*",
	},
}

// tasksFormat is the JSON that Label Studio exports: a list of tasks, each of an image.
var tasksFormat = named{
	name:    "Label Studio's JSON",
	objects: "annotations/result completions/result",
	class:   "label value/rectanglelabels value/polygonlabels value/ellipselabels value/labels",
	forms: []*form{
		entry("points"+ofTask, "value/points"+ofTask),
		entry("points"+ofTask, "value/rle"+ofTask), // of brushes, which is refused
		entry("radiusX radiusY x y rotation"+ofTask,
			"value/radiusX value/radiusY value/x value/y value/rotation"+ofTask),
		entry("height width x y rotation"+ofTask, "value/height value/width value/x value/y value/rotation"+ofTask),
	},
	image:  [3]string{"data/image data/img data/url file_upload"},
	shared: ".",
	drops:  "annotations/was_cancelled",
	path:   uploaded,
}

// viaMember is the member with the images of a project of VIA. What VIA exports has them without it.
const viaMember = "_via_img_metadata"

// tableForms are the forms of shapes in a CSV, by the names of their columns in lower case. The first that a table has
// in full counts.
var tableForms = []*form{
	entry("x1 y1 x2 y2 x3 y3 x4 y4", "x1 y1 x2 y2 x3 y3 x4 y4"),
	entry("x0 y0 x1 y1", "xmin ymin xmax ymax"),
	entry("x0 y0 x1 y1", "x_min y_min x_max y_max"),
	entry("x0 y0 x1 y1", "minx miny maxx maxy"),
	entry("x0 y0 x1 y1", "x0 y0 x1 y1"),
	entry("x0 y0 x1 y1", "x1 y1 x2 y2"),
	entry("x0 y0 x1 y1", "left top right bottom"),
	entry("x y w h", "bbox_x bbox_y bbox_width bbox_height"),
	entry("x y w h", "left top width height"),
	entry("x y w h", "x y width height"),
	entry("x y w h", "x y w h"),
	entry("wkt", "polygonwkt_pix"), // SpaceNet
	entry("via region_attributes", "region_shape_attributes region_attributes"),
	entry("runs", "encodedpixels"), // Kaggle
	entry("runs", "rle_mask"),
	entry("runs", "rle"),
	entry("runs", "encoding"),
}

// imageColumns and classColumns are the names, in lower case, that tables have for the image of a shape and its class.
var (
	imageColumns = strings.Fields("image_path img_path image file_name filename file path image_name img image_id " +
		"imageid")
	classColumns = strings.Fields("label class class_name category category_name label_name labelname name")
)

// choose returns the form of an object: an outline, if it has one and boxes are not asked for.
func (l *labels) choose(f *named, of record) (*form, error) {
	var box, outline *form
	for _, form := range f.forms {
		switch isBox := form.kind.text == nil && len(form.kind.roles) == 4; {
		case !form.all(of):
		case isBox && box == nil:
			box = form
		case !isBox && outline == nil:
			outline = form
		}
	}
	switch {
	case box != nil && (l.o.Boxes || outline == nil):
		return box, nil
	case outline != nil:
		return outline, nil
	case f.lacks != "":
		return nil, fault.New(fault.Unsupported, "object", "%s", f.lacks)
	}
	l.leaveOut("an object without coordinates")
	return f.forms[0], nil
}
