"""The explorer: packed data, the widget and the sources of its program, without a browser."""

import json
import re

import nads_book as nb
import numpy as np
import pytest
import torch
from bundle_js import sources_hash
from explorer_pages import BY_NAD, FOURIER, HOSTILE, NADS, PHOTOS, own_nads
from nads_book.explorer import bundle, data, views

import nads_core as nc

# Packed data


def unpack_directions(packet):
    """Return the directions (n, H, H) that a browser sees: the inverse of `pack_nads`, up to rounding."""
    header, content = packet
    count, size = header["count"], header["size"]
    scales = np.frombuffer(content, "<f4", count)
    return (
        np.frombuffer(content, np.int8, offset=8 * count).reshape(count, size, size)
        * scales[:, None, None]
    )


@pytest.mark.stored
def test_packed_directions_are_off_by_half_a_level_at_most():
    nads = NADS["lenet"]
    packet = data.pack_nads(nads, "LeNet", "lenet")
    seen, expected = unpack_directions(packet), nads.directions[:, 0].numpy()
    level = np.abs(expected).max((1, 2), keepdims=True) / data.LEVELS
    assert (np.abs(seen - expected) <= 0.501 * level).all()
    assert len(packet[1]) == 1024 * (4 + 4 + 1024)


@pytest.mark.stored
def test_header_holds_what_was_measured_and_says_what_was_not():
    header, _ = data.pack_nads(NADS["lenet"], "LeNet", "lenet")
    accuracies = {tuple(k): (accuracy, low, high) for k, accuracy, low, high in header["fourier"]}
    rows = [row["test_accuracy"] for row in FOURIER.rows if row["frequency"] == [0, 0]]
    accuracy, low, high = accuracies[0, 0]
    assert accuracy == pytest.approx(np.mean(rows), abs=1e-4) and low < accuracy < high
    assert len(header["accuracies"]) == len({row["index"] for row in BY_NAD.rows})
    assert np.max(header["energies"]) == 1
    vgg11, _ = data.pack_nads(NADS["vgg11"], "VGG-11", "vgg11")
    assert vgg11["published"] == (nb.load_results("fig1-vgg11") is None) and not header["published"]
    assert len(vgg11["fourier"]) == 130 or not vgg11["published"]
    assert "fourier" not in data.pack_nads(own_nads(), "small")[0]


def test_scripts_hold_no_markup():
    packet = data.pack_nads(own_nads(), HOSTILE)
    script = data.as_script(HOSTILE, packet)
    assert not re.search("[<>&\u2028\u2029]", script) and script.count("\n") == 1
    key, header = re.fullmatch(r".*?\[(\".*?\")\] = (\{.*\});\n", script).groups()
    assert json.loads(key) == json.loads(header)["label"] == HOSTILE


def test_scripts_are_small_and_their_numbers_are_json():
    script = data.as_script("lenet", data.pack_nads(NADS["lenet"], "LeNet", "lenet"))
    assert len(script) < 1.2e6
    assert json.loads(script[script.index('] = {"') + 4 : -2])["count"] == 1024


def test_other_images_than_square_grey_ones_are_refused():
    colour = nc.NADs(torch.zeros(2, 3, 8, 8), torch.ones(2))
    with pytest.raises(ValueError, match="single-channel"):
        data.pack_nads(colour, "colour")
    with pytest.raises(ValueError, match="photos must be"):
        data.pack_photos(PHOTOS, size=16)


def test_every_picture_has_a_name_and_a_class_of_its_own():
    pytest.importorskip("PIL")
    pytest.importorskip("matplotlib")
    again = nb.explorer.load_pictures()
    assert (
        torch.equal(again.images, PHOTOS.images)
        and 0 <= again.images.min()
        and again.images.max() <= 1
    )
    assert again.labels.tolist() == list(range(len(set(again.class_names)))) and len(again) in (
        8,
        9,
    )
    small = nb.explorer.load_pictures(8).images
    assert small.shape == (len(again), 3, 8, 8)  # for NADs of your own
    means = torch.nn.functional.avg_pool2d(again.images, 4)
    assert (small - means).abs().mean() < 0.03 < (small - means.roll(1, 0)).abs().mean()


@pytest.mark.parametrize("missing", ["PIL", "matplotlib.cbook"])
def test_pictures_without_pillow_or_the_photograph(monkeypatch, missing):
    pytest.importorskip("PIL")
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    pictures = nb.explorer.load_pictures()
    if missing == "PIL":
        assert torch.equal(
            pictures.images, nc.load_images("generated", train=False, num_images=10).images
        )
    else:
        assert "Grace Hopper" not in pictures.class_names and torch.equal(
            pictures.images, PHOTOS.images[:8]
        )
    assert data.pack_photos()[0]["count"] == len(pictures)


@pytest.mark.parametrize(
    "arguments",
    [
        (("nothing",), {}),
        ((), {"index_": 1}),
        ((), {"architecture": "alexnet"}),
        ((), {"second": "alexnet"}),
    ],
)
def test_show_says_what_can_be_asked_for(arguments):
    parts, view = arguments
    with pytest.raises(ValueError, match="unknown .*(choose|has)"):
        nb.explorer.show(*parts, **view)


# The widget of a live notebook


def test_widget_follows_and_sends_what_is_asked_for():
    pytest.importorskip("anywidget")
    explorer = nb.explorer.show("direction", "poison", second="vgg11", index=7)
    assert (explorer.architecture, explorer.second, explorer.index) == ("lenet", "vgg11", 7)
    assert set(explorer._packets) == {
        "lenet",
        "vgg11",
        "photos",
    }  # of the first view: no kernel need answer
    explorer.index = 12
    state = explorer.get_state()
    assert state["index"] == 12 and state["parts"] == ["direction", "poison"]
    before = explorer._packets["lenet"]
    assert before == data.compressed(data.pack_nads(NADS["lenet"], "LeNet", "lenet"))
    explorer.set_state(
        {"_wanted": ["lenet", "resnet18", "nonsense"], "index": 30}
    )  # as the browser does
    assert explorer.index == 30 and set(explorer._packets) == {
        "lenet",
        "vgg11",
        "photos",
        "resnet18",
    }
    assert (
        explorer._packets["resnet18"]["bytes"]
        == data.pack_nads(NADS["resnet18"], "ResNet-18", "resnet18")[1]
    )
    assert explorer._packets["lenet"] is before
    with pytest.raises(Exception, match="unknown architecture"):
        explorer.architecture = "alexnet"


def test_widget_refuses_what_it_cannot_show():
    traitlets = pytest.importorskip("traitlets")
    pytest.importorskip("anywidget")
    nads = {"many": own_nads(), "few": own_nads(count=5)}
    explorer = nb.explorer.show(nads=nads, index=19)
    impossible = {
        "index": 20,
        "kept": 21,
        "photo": 99,
        "strength": float("nan"),
        "mix": [0.5],
        "frequency": [1, 2, 3],
        "parts": ["direction"],
        "second": "toString",
    }
    for key, value in impossible.items():
        before = getattr(explorer, key)
        with pytest.raises(traitlets.TraitError):
            setattr(explorer, key, value)
        assert getattr(explorer, key) == before
    explorer.photo = -1  # as the browser does
    explorer.architecture = "few"
    assert (explorer.index, explorer.kept) == (4, 5)
    explorer.second = "many"
    explorer.index = 19


def test_widget_of_own_nads_and_a_linked_slider():
    widgets = pytest.importorskip("ipywidgets")
    pytest.importorskip("anywidget")
    explorer = nb.explorer.show("direction", nads=own_nads())
    assert explorer.labels == {"small": "small"} and explorer.architecture == "small"
    slider = widgets.IntSlider(max=19)
    widgets.link((slider, "value"), (explorer, "index"))
    slider.value = 5
    assert explorer.index == 5


def test_without_anywidget_the_html_carries_its_arrays(monkeypatch, without_anywidget):
    page = nb.explorer.show("direction", second="vgg11")._repr_html_()
    assert (
        '["lenet-' in page
        and '["vgg11-' in page
        and '["resnet18' not in page
        and '["photos' not in page
    )
    monkeypatch.setattr("nads_book.explorer.figure.publishing", lambda: True)
    assert (
        len(nb.explorer.show()._repr_html_()) < 2e3
    )  # the pages of a book share the arrays and the program


def test_a_notebook_carries_the_program_packed(without_anywidget):
    """Bytes of the program in an output, of the 61,000 that it has."""
    arrays = data.as_script("small", data.pack_nads(own_nads(), "small"))
    page = nb.explorer.show("direction", nads=own_nads())._repr_html_()
    assert 0 < len(page) - len(arrays) < 0.6 * len(bundle.script())
    widget = pytest.importorskip("anywidget") and bundle.packed_module()
    assert len(widget) < 0.6 * len(bundle.module())


def test_accuracies_along_another_version_stand_where_this_one_has_them():
    measured, names = BY_NAD.experiment().nads, ("label", "lenet")
    same, _ = data.pack_nads(measured, *names)
    assert {len(row) for row in same["accuracies"]} == {4}  # of the very directions
    turned = measured.directions[:, 0].clone()
    turned[2:4] = measured.directions[2:4, 0].flip(0)  # two have changed places
    mixed = (
        (turned[891] + turned[892]) / 2**0.5,
        (turned[891] - turned[892]) / 2**0.5,
    )  # and two are others
    turned[891], turned[892] = mixed
    other = nc.NADs(turned[:, None], measured.eigenvalues, measured.provenance)
    moved = data.pack_nads(other, *names)[0]["accuracies"]
    known = {row[0]: row[1:4] for row in same["accuracies"]}
    for place, *values, closeness in moved:
        assert closeness == 1 or place in (890, 891, 892, 893)
        assert closeness < 0.9 or values == known[{2: 3, 3: 2}.get(place, place)]
    assert [row[0] for row in moved] == sorted(row[0] for row in moved)
    poisoned = data.pack_nads(other, *names)[0]["poison"]
    assert poisoned[0][0] is None and len(poisoned[0]) == 4 and len(poisoned[1]) == 5


def test_what_the_source_does_not_have_is_refused(without_anywidget):
    def refuses(match, *parts, **arguments):
        with pytest.raises(ValueError, match=match):
            nb.explorer.show(*parts, **arguments)

    refuses("index is 1024, expected 0 to 1023", index=1024)
    refuses("index is 20, expected 0 to 19", nads=own_nads(), index=20)
    refuses("index is 2.5, expected a whole number", index=2.5)
    refuses("kept is -1", kept=-1)
    refuses("photo is 99, expected 0 to", photo=99)
    refuses("strength is nan", strength=float("nan"))
    refuses("strength is 3", strength=3)
    refuses("mix is 2.0, expected -1 to 1", mix=(2, *[0] * 11))
    refuses("frequency is 0.5, expected a whole number", frequency=(0.5, 2))
    refuses("frequency is .*ky, kx", frequency=(1, 2, 3))
    refuses("one image size", nads={"a": own_nads(), "b": own_nads(12)})
    refuses("not empty", nads={"": own_nads()})
    refuses("photos must be", nads=own_nads(), images=PHOTOS)
    refuses("single-channel", nads=nc.NADs(torch.zeros(2, 3, 8, 8), torch.ones(2)))
    page = nb.explorer.show(
        nads=own_nads(count=5), index=np.int64(3)
    )  # 32 NADs are kept where there are as many
    assert page.view.kept == 5 and json.dumps(vars(page.view))
    assert {nc.load_nads(name).directions.shape for name in data.LABELS} == {
        (views.Source().count(""), 1, 32, 32)
    }


# The program's sources


PATHS = sorted(bundle.SOURCES.rglob("*.js"))


SOURCES = {path.relative_to(bundle.SOURCES).as_posix(): path.read_text("utf8") for path in PATHS}


def declared(source):
    """Name what a source has in its outermost scope."""
    return set(
        re.findall(r"^(?:export )?(?:async )?(?:const|class|function) (\w+)", source, re.MULTILINE)
    )


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_imports_what_it_uses_and_nothing_else(name):
    """As far as calls and constants show: esbuild takes a name that is not imported for a global one."""
    source = SOURCES[name]
    imported = set(
        ", ".join(re.findall(r"^import \{ (.*) \}", source, re.MULTILINE)).split(", ")
    ) - {""}
    body = re.sub(r"^import .*;\n", "", source, flags=re.MULTILINE)
    used = set(re.findall(r"(?<![\w.$])(\w+)\(|\b([A-Z][A-Z_]+)\b", body))
    elsewhere = set().union(*map(declared, SOURCES.values())) - declared(source)
    assert {name for pair in used for name in pair} & elsewhere <= imported
    assert all(re.search(rf"\b{name}\b", body) for name in imported)


def test_the_bundle_was_made_from_these_sources():
    """If not, run `python tools/bundle_js.py`, which needs npx, and commit the bundle."""
    assert bundle.script().startswith(f"// sources: {sources_hash()}\n")
