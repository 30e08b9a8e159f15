package vector

// placedTexts are files whose objects have their coordinates where Options.Box says, some of them damaged.
var placedTexts = []string{
	"684,8,273,116,0,0,0,0\n406,119,265,70,1,4,0,0,\n",
	"(563,478),(630,573),1\n",
	"# a comment\nx;y;w;h;c\n1;2;3;4;a\n",
	"<root><frame n='7'><object><box>1 2 3 4</box><name>a</name></object></frame></root>",
	`{"a": [{"b": [1, 2, 3, 4], "c": "x", "d": 7}, {"b": null}], "d": "i"}`,
	`{"object": {"box": [[1, 2, 3, 4], [5, 6, 7, 8]], "name": ["a", "b"]}}`,
	`{"a": {"b": [1, 2, 3, 4, 5], "c": [1]}}` + "\n" + `{"a": {"b": "1 2 3 4"}}`,
	`{"x.png": [[1, 2, 3, 4, "a"], [5, 6, 7, 8, "b"]], "y.png": []}`,
	"7,[[1, 2], [3, 4], [5, 6]],p_q\n",
	`7,"{""size"": [4, 4], ""counts"": [3, 2, 11]}",p_q` + "\n",
}
