"""Sliders of a live notebook, which call Python."""

import io

import numpy as np
import torch
from nads_book.explorer.sliders import draw_panels, live_sliders
from numpy.testing import assert_allclose
from PIL import Image

import nads_core as nc


def test_panels_show_what_their_names_say():
    nads = nc.load_nads("lenet")
    picture = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(0))
    png = draw_panels(nads, picture, 5, 1024, 0.5)
    pixels = np.asarray(Image.open(io.BytesIO(png)))[3::6, 3::6].transpose(2, 0, 1) / 255
    direction, rebuilt, poisoned = np.split(pixels, 3, axis=2)
    signed = (nads[5][0] / nads[5].abs().max()).numpy()
    assert_allclose(direction[0] - direction[2], signed, atol=0.01)
    assert_allclose(rebuilt, picture, atol=0.01)
    expected = nc.poison(picture[None], torch.tensor([0]), nads, 5, 0.5)[0]
    assert_allclose(poisoned, expected.clamp(0, 1), atol=0.01)
    black = np.asarray(Image.open(io.BytesIO(draw_panels(nads, picture, 5, 0, 0.5))))[3::6, 3::6]
    assert not black[:, 32:64].any()  # of no NADs, nothing


def test_the_picture_follows_the_sliders():
    nads = nc.load_nads("lenet")
    picture = torch.zeros(3, 32, 32)
    sliders = live_sliders(nads, picture)
    sliders.index = 7
    assert sliders.png == draw_panels(nads, picture, 7, sliders.kept, sliders.strength)
    assert "NAD 7," in sliders.alt
