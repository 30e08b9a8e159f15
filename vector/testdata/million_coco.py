"""A COCO file of a million polygons on 10,000 images, for BenchmarkCoco.

    python vector/testdata/million_coco.py FILE

Octagons of 5 to 25 pixels on images of 512 by 512 pixels, 100 on each, with coordinates of two decimals.
"""

import json
import math
import random
import sys

IMAGES, EACH, CORNERS, SIDE = 10_000, 100, 8, 512


def main():
    """Writes the file."""
    r = random.Random(1)
    images = [{"id": i, "file_name": f"{i:05}.png", "height": SIDE, "width": SIDE} for i in range(IMAGES)]
    categories = [{"id": i, "name": f"class {i}"} for i in range(1, 10)]
    with open(sys.argv[1], "w") as f:
        f.write(f'{{"images": {json.dumps(images)}, "categories": {json.dumps(categories)}, "annotations": [')
        for i in range(IMAGES * EACH):
            x, y, turn = r.uniform(30, SIDE - 30), r.uniform(30, SIDE - 30), r.uniform(0, 6.28)
            width, height = r.uniform(5, 25), r.uniform(5, 25)
            angles = [turn + k * 2 * math.pi / CORNERS for k in range(CORNERS)]
            xs = [round(x + width * math.cos(a), 2) for a in angles]
            ys = [round(y + height * math.sin(a), 2) for a in angles]
            box = [min(xs), min(ys), round(max(xs) - min(xs), 2), round(max(ys) - min(ys), 2)]
            one = {
                "id": i, "image_id": i // EACH, "category_id": r.randint(1, 9), "iscrowd": 0,
                "area": round(math.sqrt(8) * width * height, 2), "bbox": box,
                "segmentation": [[v for xy in zip(xs, ys, strict=True) for v in xy]],
            }  # fmt: skip
            f.write((", " if i else "") + json.dumps(one))
        f.write("]}\n")


if __name__ == "__main__":
    main()
