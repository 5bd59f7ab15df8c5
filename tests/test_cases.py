"""Thirty small cases, most of them bug reports of other projects: right, or rejected clearly.

The docstring of a case names the reports. Each outcome is a
dictionary whose ``as_expected`` says whether the case is as it should be.
"""

import copy
import inspect
import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch
from nads_book import cli
from nads_book.benchmarks.plain_loop import plain_vectors, standard_error, z_score
from nads_book.pages.parameters import check_parameters
from nads_book.photos import load_images
from nads_book.theory.reference import average_gradient, mixed_derivative
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import nads_core as nc

pytestmark = pytest.mark.slow
SHAPE, NETWORKS, INPUTS = (1, 8, 8), 2_000, 16
ERRORS = 4  # standard errors within which a ratio is 1
Image = pytest.importorskip("PIL.Image")
PICTURE = Image.new("RGB", (40, 40))


def along_inputs(network, inputs):
    """Return the gradient of the first output, averaged over inputs and their opposites."""
    return average_gradient(
        lambda x: network(x).flatten(1)[:, 0],  # type: ignore[arg-type]
        torch.cat([inputs, -inputs]),
    )


def along_weights(network, inputs):
    """Return how this gradient, of a network of one output, moves with the weights that are
    trained.

    Each part of a complex weight's probe has variance 1, as that of a real weight.
    """
    probe = {
        name: torch.randn_like(weight) * (1 + weight.is_complex()) ** 0.5
        for name, weight in network.named_parameters()
        if weight.requires_grad
    }
    return mixed_derivative(network, torch.cat([inputs, -inputs]), probe)


def trace(factory, **options):
    """Return the trace of the second moment by the library."""
    moment = nc.second_moment(factory, SHAPE, NETWORKS, progress=False, **options)
    return float(moment.shares().diagonal(dim1=1, dim2=2).sum())


def right(factory, vector=along_inputs, **options):
    """Expect the trace of the plain method, which draws as many other networks."""
    value = trace(factory, **options)
    vectors = plain_vectors(factory, SHAPE, NETWORKS, 10_000, INPUTS // 4, vector)
    squares = vectors.prod(1).sum(1)  # without the noise of the inputs
    mean = float(squares.mean())
    return {
        "networks": NETWORKS,
        "ratio": value / mean,
        "standard_error": standard_error(squares, NETWORKS) / mean,
        "as_expected": abs(z_score(value, squares, NETWORKS)) < ERRORS,
    }


def message(word, function, *arguments, **options: object):
    """Expect a word in the message of an error, or "accepted": no error."""
    text = "accepted"
    try:
        function(*arguments, **options)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    expected = text == word if word == "accepted" else word in text
    return {"message": text, "word": word, "as_expected": expected}


def equal(value, expected):
    """Expect a value."""
    return {"value": value, "expected": expected, "as_expected": value == expected}


def same_with_threads(factory):
    """Expect the trace of one worker, bit for bit, from two threads."""
    with ThreadPoolExecutor(2) as pool:
        return equal(trace(factory, workers=pool), trace(factory, workers=1))


def plain(x, body, last):
    return last(body(x))


class Net(nn.Module):
    """Two layers, others before the activation, and a function of the input and of both."""

    def __init__(self, function=plain, *layers):
        super().__init__()
        self.function, self.last = function, nn.Linear(24, 24)
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 24), *layers, nn.Tanh())

    def forward(self, x):
        return self.function(x, self.body, self.last)


# --- networks


def batch_statistics():
    """Batch norm without running statistics: pytorch/functorch#505, google/neural-tangents#122.
    Statistics that move in eval mode have no public report.
    """

    class Moving(nn.BatchNorm1d):
        def forward(self, x):
            self.running_mean.lerp_(x.detach().mean(0), 1e-6)
            return super().forward(x)

    norm = nn.BatchNorm1d(24, track_running_stats=False)
    yield message("BatchNorm1d", trace, lambda: Net(plain, norm))
    yield message("buffer body.2.running_mean changes", trace, lambda: Net(plain, Moving(24)))


def attention_over_the_batch():
    """batch_first forgotten: IBM/TabFormer#14, om-ai-lab/OmDet#19."""

    def network(batch_first):
        attention = nn.TransformerEncoderLayer(8, 2, 32, 0.0, batch_first=batch_first)
        return nn.Sequential(nn.Flatten(1, 2), attention, nn.Flatten(), nn.Linear(64, 24))

    yield message("batch_first", trace, partial(network, False))
    yield right(partial(network, True))


def activation_in_place():
    """A result changes in place after its layer: meta-pytorch/captum#156, #914."""

    def network():
        network = Net(lambda *net: plain(*net).relu_())
        nn.init.ones_(network.last.bias)
        return network

    yield right(network)


def last_weight_twice():
    """A weight acts in two places: ludwig-ai/ludwig#3214, f-dangel/backpack#248."""

    def retrieving(x, body, last):
        hidden = body(x)
        return last(hidden + 20 * F.softmax(5 * last(hidden), 1) @ last.weight)

    yield right(partial(Net, retrieving))


def weights_merged_by_eval():
    """eval() adds one weight to another: microsoft/LoRA#34, Lightning-AI/lit-llama#185. A table that
    is made at the first call: openai/gpt-oss#43.
    """

    class Rotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", None)

        def forward(self, x):
            if self.table is None:
                self.table = torch.cos(0.1 * torch.arange(24))
            return x * self.table

    class Merging(nn.Linear):
        def train(self, mode=True):
            self.weight.data += (self.training - mode) * 5 * self.bias.data
            return super().train(mode)

    yield right(lambda: Net(plain, Merging(24, 24)))
    yield right(lambda: Net(plain, Rotary()))


def list_of_all_networks():
    """Threads share a list of features: meta-pytorch/captum#469, pytorch/pytorch#128272."""

    class Skipping(Net):
        skips = []

        def forward(self, x):
            self.skips.append(self.body(x))
            time.sleep(1e-4)  # another thread goes on
            return self.last(self.skips.pop())

    yield same_with_threads(Skipping)


def frozen_weights():
    """Only trained weights count: aleximmer/Laplace#144, f-dangel/backpack#233."""

    def network():
        network = Net(lambda *net: plain(*net)[:, :1])
        network.body.requires_grad_(False)
        return network

    yield right(network, along_weights, estimator=nc.MixedDerivative())


def random_forward_pass():
    """Layers are dropped in eval mode too: WangFeng18/Swin-Transformer#7."""
    network = partial(Net, lambda *net: plain(*net) * (random.random() > 0.05))
    for seed in range(20):
        yield message("draws random numbers", trace, network, seed=seed)


def checkpoint_of_an_edited_network():
    """A run is resumed after an edit; no public report."""

    def network(slope):
        return Net(plain, nn.LeakyReLU(slope))

    for word, slope in (("accepted", 0.01), ("another factory", 0.03), ("accepted", 0.01)):
        yield message(word, trace, partial(network, slope), checkpoint="run.npz")


def last_layer_repeated():
    """A layer is applied several times: f-dangel/backpack#248, locuslab/deq#23."""
    yield right(partial(Net, lambda x, body, last: last(torch.tanh(last(body(x))))))


def changed_logits():
    """Logits change after their layer, or in a hook: meta-pytorch/captum#156."""

    def centred(*net):
        logits = plain(*net)
        return logits.sub_(logits.mean(1, keepdim=True))

    def hooked():
        network = Net()
        network.last.register_forward_hook(lambda *call: call[-1].softmax(1))
        return network

    yield right(partial(Net, centred))
    yield right(hooked)


def compiled_network():
    """Several backward passes through torch.compile: locuslab/torchdeq#11."""
    yield equal(trace(lambda: torch.compile(Net(), backend="aot_eager")), trace(Net))


def hook_with_a_dictionary():
    """A hook stores features: meta-pytorch/captum#469, pytorch/pytorch#42478."""
    features = {}

    def store(name, *call):
        features[name] = call[-1]

    def network():
        network = Net(lambda x, body, last: (body(x), last(features["body"]))[1])
        network.body.register_forward_hook(partial(store, "body"))
        return network

    yield same_with_threads(network)


def weights_of_other_types():
    """Complex weights, and a permutation: neuraloperator/neuraloperator#103, #192."""

    def spectral(x, body, last):
        x = torch.fft.irfft2(torch.fft.rfft2(x) * last.gain)
        return plain(x[..., last.order], body, last)[:, :1]

    def network():
        network = Net(spectral)
        network.last.gain = nn.Parameter(torch.randn(8, 5, dtype=torch.cfloat))
        network.last.order = nn.Parameter(torch.randperm(8), False)
        return network

    yield right(network, along_weights, estimator=nc.MixedDerivative())


def network_of_gradients():
    """forward takes a gradient: Lightning-AI/pytorch-lightning#4487, rezaakb/pinns-torch#12."""

    def energy(x, *layers):
        x = x if x.requires_grad else x.detach().requires_grad_()
        return torch.autograd.grad(plain(x, *layers).sum(), x, create_graph=True)[0].flatten(1)

    yield right(partial(Net, energy))


def reentrant_checkpoints():
    """Activation checkpoints: pytorch/xla#8729, pytorch/pytorch#51743."""

    def network(reentrant):
        return Net(lambda x, body, last: last(checkpoint(body, x, use_reentrant=reentrant)))

    yield message("use_reentrant", trace, partial(network, True))
    yield right(partial(network, False))


def meta_device():
    """Weights without values: huggingface/transformers#30703, huggingface/accelerate#3617."""
    yield message("meta", trace, lambda: Net().to("meta"))


def few_networks_respond():
    """Dead networks: keras-team/keras#7057, jvargasmu/population_estimation#68."""
    yield right(partial(Net, lambda *net: plain(*net) * (net[2].bias[0] > 0.18)))


def weights_that_do_not_vary():
    """Layers are copied from a template; no public report."""
    body = Net().body

    def network():
        network = Net()
        network.body = copy.deepcopy(body)
        return network

    yield right(network)


def misleading_messages():
    """Rejected for another reason: facebookresearch/dinov2#472, fdlm/listening-moods#2. A list of
    layers, float16 and a file of safetensors have no public report.
    """

    def in_a_list():
        network = Net(lambda x, body, last: last(last.layers[0](x)))
        network.last.layers = [Net()]
        return network

    with torch.inference_mode():
        yield message("inference_mode", trace, Net)
    yield right(in_a_list)
    yield message("float16", trace, Net, dtype="float16")
    for content in ("version https://git-lfs.github.com/spec/v1", "\2\0\0\0\0\0\0\0{}"):
        Path("nads.npz").write_text(content)
        yield message("not as an archive", nc.load_nads, "nads.npz")


def replaced_layers():
    """Faster layers take what PyTorch takes: speechbrain/speechbrain#63, pytorch/pytorch#71108,
    #28793.
    """

    def pooled():
        layers = nn.Conv2d(1, 4, 3, padding=1), nn.MaxPool2d([2, 2])
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, 24))

    def one_by_one(x, body, last):
        return plain(torch.stack([last.conv(image.cfloat()).abs() for image in x]), body, last)

    def convolving():
        network = Net(one_by_one)
        network.last.conv = nn.Conv2d(1, 1, 3, padding=1, dtype=torch.cfloat)
        return network

    yield right(pooled)
    yield right(convolving)


# --- images, trainings and chapters


load = partial(load_images, root=".", progress=False)


def photos():
    """Write twelve black pictures to the working folder."""
    for folder in ("train/cat", "train/dog", "test/cat", "test/dog"):
        Path(folder).mkdir(parents=True)
        for index in range(3):
            PICTURE.save(f"{folder}/{index}.png")


def deep_images():
    """16 bits became white: pytorch/vision#2218, keras-team/keras#4486."""
    for mode in ("I;16", "I", "F"):
        Image.new(mode, (40, 40)).save("train/cat/9.tiff")
        yield message(f"mode {mode} has more than 8 bits", load)


def own_folder_replaced():
    """Folders without images: pytorch/vision#2831, open-mmlab/mmpretrain#507."""
    Path("train/new").mkdir()
    yield message("train/new holds no images", load)
    Path("train").rename("Train")
    yield message("'Train'", load)


def labels_of_the_test_part():
    """The test part lacks a class: ultralytics/ultralytics#13936, weecology/DeepForest#1147."""
    Path("test/cat").rename("cat")
    yield equal(load(train=False).labels.tolist(), [1, 1, 1])


def hidden_folders():
    """What systems leave behind: pytorch/vision#2831, Project-MONAI/MONAI#8305."""
    Path("train/.checkpoints").mkdir()
    PICTURE.save("train/.checkpoints/0.png")
    Path("train/cat/._0.png").touch()
    Path("train/cat/loop").symlink_to("..")
    yield equal(sorted(load().labels.tolist()), [0, 0, 0, 1, 1, 1])


def orientation():
    """A photo on its side: kohya-ss/sd-scripts#1316, python-pillow/Pillow#4703."""
    exif = Image.Exif()
    exif[0x0112] = 6  # the first row is shown on the right
    Image.linear_gradient("L").save("train/cat/9.jpg", exif=exif)  # from black to white
    brightest = load().images.amax((0, 1))
    yield equal(brightest[0, [0, -1]].round().tolist(), [1, 0])


def formats_left_out():
    """Only some endings counted: wtyhub/MuseNet#5, apple/turicreate#641."""
    for kind in "gif avif jfif jp2 tga dib ico webp".split():
        PICTURE.save(f"train/cat/9.{kind}")
    yield equal(len(load()), 14)


def too_many_pixels():
    """An error that names no file: mittagessen/kraken#299, deepfates/memery#10."""
    Image.new("1", (14_000, 14_000)).save("train/cat/9.png")
    yield message("9.png", load)
    yield equal(cli.main(["report", "lenet", "--images", "."]), 2)


def inputs_of_a_training():
    """A last batch of one image: fastai/fastai#1352, openvinotoolkit/nncf#379. Labels of other
    types have no public report.
    """
    classes = torch.arange(129) % 24

    def train(network, labels):
        data = torch.ones(129, *SHAPE), labels
        nc.train_network(network, data, data, recipe=nc.SEPARABLE_RECIPE, progress=False)

    yield message("batch_size", train, Net(plain, nn.BatchNorm1d(24)), classes)
    for word, labels in (
        ("accepted", classes.int()),
        ("from 1 to 24", classes + 1),
        ("from_numpy", classes.numpy()),
    ):
        yield message(word, train, Net(), labels)


def parameters_of_papermill():
    """Lists arrive as text: nteract/papermill#371, #55."""
    yield message("'[0, 100]'", check_parameters, seed="[0, 100]")


CASES = {name: case for name, case in list(globals().items()) if inspect.isgeneratorfunction(case)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:None of the inputs", "ignore:1 left out")
def test_outcomes_are_as_expected(name, tmp_path, monkeypatch):
    """Each outcome of a case is the value, the error or the plain method's moment."""
    monkeypatch.chdir(tmp_path)
    photos()
    outcomes = list(CASES[name]())
    assert outcomes
    assert [outcome for outcome in outcomes if not outcome["as_expected"]] == []
