"""An example of each class of the package whose docstring has none, for docs/reference."""

EXAMPLES = {
    "chaski.Blocks": 'chaski.load("chips.h5", batch_size=32, shuffle=chaski.Blocks(256, pool=8))',
    "chaski.Loader": """with chaski.load("chips/", batch_size=32) as loader:
    for batch in loader:
        train(batch["image"])
    state = loader.state_dict()""",
    "chaski.Batch": """batch = loader.peek()
batch["image"].shape, batch.axes["image"], batch.fields["image"].bands
batch.plot(rows=2).savefig("batch.png")""",
    "chaski.Ragged": """for boxes in batch["boxes"].rows():  # (k, 4), of each sample its own k
    print(len(boxes))""",
    "chaski.FieldInfo": 'bands = {f.name: f.bands for f in loader.fields if f.kind == "raster"}',
    "chaski.SourceInfo": "names = [source.name for source in loader.sources]  # of a mixture",
    "chaski.BadRows": 'print(loader.bad.count, "bad rows")',
    "chaski.BadRow": """for epoch, row in loader.bad.rows:
    print(epoch, row.file, row.message)""",
    "chaski.SampleRef": """for row in batch.bad:
    print(row.sample.id, row.kind)""",
    "chaski.Field": """chaski.load(
    "pairs",
    fields={
        "image": chaski.Field(pattern="images/{id}.tif", bands=["B04", "B08"]),
        "mask": chaski.Field(pattern="masks/{id}.tif", dtype="int64", fill=255),
        "year": chaski.Field(column="year", kind="number"),
    },
    batch_size=32,
)""",
    "chaski.Pixels": 'chaski.Pixels(dtype="float16", layout="n y x b", augment="d4")',
    "chaski.Normalize": "chaski.Normalize(mean=[1200, 1900], std=[400, 700], clip=(-3, 3))",
    "chaski.Vector": 'chaski.Vector("fields.geojson", column="crop", classes=["maize", "rice"])',
    "chaski.RandomWindow": "chaski.RandomWindow(256, per_asset=16, max_nodata=0.1)",
    "chaski.Grid": "chaski.Grid(256, overlap=32)",
    "chaski.ResizedWindow": "chaski.ResizedWindow(224, scale=(0.2, 1.0), per_asset=4)",
    "chaski.WeightedWindow": 'chaski.WeightedWindow(256, "sampling.parquet", per_asset=8)',
    "chaski.TileWindow": "chaski.TileWindow(256, per_visit=4)",
    "chaski.RowWindow": 'chaski.RowWindow(64, x="col", y="row")',
    "chaski.WholeChip": "chaski.WholeChip(max_nodata=0.5)",
    "chaski.GeoWindow": "chaski.GeoWindow(size_m=2560, resolution=10, per_epoch=10_000)",
    "chaski.GroundGrid": """bounds = 500_000, 4_990_000, 510_000, 5_000_000
chaski.GroundGrid(epsg=32633, bounds=bounds, resolution=10)""",
    "chaski.Rows": """chaski.Rows(
    where=[("cloud_cover", "<", 20)],
    bbox=(5.9, 45.8, 10.5, 47.8),
    datetime="2021-04-01/2021-09-30",
    split=chaski.Split.by_hash({"train": 0.8, "val": 0.2}),
    use="train",
)""",
    "chaski.Split": """split = chaski.Split.by_cell(10_000, {"train": 0.8, "val": 0.2})
rows = chaski.Rows(split=split, use="train")
train = chaski.load("chips.parquet", rows=rows, batch_size=32)""",
    "chaski.Strata": 'chaski.Rows(strata=chaski.Strata("class", per_batch=True))',
    "chaski.Time": 'chaski.Rows(time=chaski.Time(key="parcel", order="date", length=12))',
    "chaski.Source": 'chaski.Source("naip/", weight=2, window=chaski.Grid(256))',
    "chaski.Mixture": """chaski.Mixture({
    "sentinel2": chaski.Source("s2/", weight=3),
    "naip": chaski.Source("naip/", weight=1),
})""",
    "chaski.OnBad": 'chaski.OnBad("skip", max_rate=0.01, quarantine="bad.jsonl")',
    "chaski.Stats": """stats = chaski.stats("chips/")
stats.mean("image"), stats.std("image")
stats.save("stats.json")""",
    "chaski.Suggestion": """found = chaski.suggest("data")
print(found)
loader = eval(found.calls["train"])""",
    "chaski.Engine": 'chaski.Engine(workers=8, cache="/nvme/cache", cache_bytes=200 << 30)',
    "chaski.Map": "chaski.Map(augment, processes=4, ahead=8)",
    "chaski.Connection": """with contextlib.closing(chaski.Connection("host:7447")) as connection:
    connection.info("chips/a.tif")""",
    "chaski.Token": 'chaski.Engine(token=chaski.Token.file("/run/secrets/chaski"))',
    "chaski.taco.Asset": """asset = chaski.taco.load("chips.tacozip").read(0).read("image.tif")
pixels = asset.array()""",
    "chaski.taco.Chunk": "chunk.array(y=slice(0, 64))  # of a sample of a streaming TACO",
    "chaski.taco.Dataset": """dataset = chaski.taco.load("chips.tacozip").where("cloud_cover < 20")
loader = dataset.loader(batch_size=8, fields={"image": "image.tif"})""",
    "chaski.taco.Folder": """folder = chaski.taco.load("chips.tacozip").read(0)
folder.data  # the rows of its samples""",
    "chaski.order.Order": "chaski.order.Order(seed=7, epoch=2, n=1000).at(0)  # the first sample",
    "chaski.order.State": """state = chaski.order.State.from_dict(loader.state_dict())
state.step(loader.samples, loader.batch_size)""",
    "chaski.order.Ticket": """ticket = chaski.order.Ticket.of_step(0, 5, 64, rank=1, world_size=4)
ticket.positions(1000)  # of the rows of rank 1 in step 5""",
    "chaski.order.Weights": "weights = state.weights  # of a `State` after `Loader.reweight`",
    "chaski.rumi.Frame": "frame.data.shape, len(frame.compressed or b'')",
    "chaski.rumi.FrameTable": 'chaski.rumi.frames(array, "b y x", 512).layout.frames',
    "chaski.rumi.Header": 'header = chaski.rumi.info("chip.rumi")\nheader.shape, header.dtype',
    "chaski.rumi.Layout": "tiles, layout = chaski.rumi.tile(array, 512)\nlayout.grid",
}
